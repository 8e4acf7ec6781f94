import type { FleetGroup } from "@/api/wire";
import { formatCount, formatDuration } from "@/lib/format";
import { PageLink } from "./page-link";
import { type Column, Table } from "./table";

type Slow = FleetGroup["slowest"][number] & { task: string | null };

/** Below it nobody stands out. */
const NOTABLE = 1.1;

const COLUMNS: Column<Slow>[] = [
  { key: "rank", title: "Rank", right: true, cell: (row) => row.rank },
  {
    key: "worker",
    title: "Worker",
    cell: (row) => (
      <PageLink page="cluster" id={row.worker_id} className="text-accent hover:underline">
        {row.worker_id}
      </PageLink>
    ),
  },
  { key: "time", title: "Step time", right: true, cell: (row) => formatDuration(row.step_time_s) },
  { key: "ratio", title: "Of the median", right: true, cell: (row) => `${row.ratio.toFixed(2)}×` },
  { key: "task", title: "Task", from: "md", cell: (row) => row.task ?? "none" },
];

/** Whose steps take longest, and how far apart the ranks of each task are. */
export function Stragglers({ groups }: { groups: readonly FleetGroup[] }) {
  const slow = groups.flatMap((group) =>
    group.slowest.filter((one) => one.ratio >= NOTABLE).map((one) => ({ ...one, task: group.task_id })),
  );
  slow.sort((a, b) => b.ratio - a.ratio);
  return (
    <>
      <ul className="px-3 py-2 text-xs text-muted">
        {groups.map((group) => (
          <li key={group.task_id ?? ""}>
            {group.task_id ?? "no task"}: {spread(group)}
          </li>
        ))}
      </ul>
      {slow.length > 0 ? (
        <Table label="Slowest ranks" rows={slow.slice(0, 10)} columns={COLUMNS} rowKey={(row) => row.worker_id} />
      ) : (
        <p className="px-3 pb-3 text-xs">No rank's steps take longer than {NOTABLE}× the median of its task.</p>
      )}
    </>
  );
}

function spread({ step, step_time_s: time }: FleetGroup): string {
  const at = step
    ? step.least === step.most
      ? `all at step ${formatCount(step.most)}`
      : `steps ${formatCount(step.least)} to ${formatCount(step.most)}, median ${formatCount(step.median)}`
    : "no step yet";
  return time
    ? `${at} · ${formatDuration(time.least)} to ${formatDuration(time.most)} a step, median ${formatDuration(time.median)}`
    : at;
}
