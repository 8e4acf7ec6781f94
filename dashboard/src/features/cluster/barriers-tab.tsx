import type { Barrier } from "@/api/wire";
import { Empty } from "@/components/ui/empty";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { ProgressBar } from "@/components/ui/progress";
import { StatusLabel } from "@/components/ui/status";
import { type Column, Table } from "@/components/ui/table";
import { useNow } from "@/hooks/now";
import { formatAge, formatCount, formatDuration } from "@/lib/format";
import { missingNames, missingText } from "@/lib/workers";
import { useCluster } from "@/stores/cluster";

/** Whose barrier it is; workers that registered by themselves have no task. A colour alone tells no link in a sentence. */
function TaskName({ id, inSentence = false }: { id: string | null | undefined; inSentence?: boolean }) {
  if (!id) return <span className="text-muted">plain workers</span>;
  return (
    <PageLink page="tasks" id={id} className={`text-accent ${inSentence ? "underline" : "hover:underline"}`}>
      {id}
    </PageLink>
  );
}

function created(barrier: Barrier): number | null {
  return barrier.created_at_ms;
}

export function BarriersTab() {
  const now = useNow(1000);
  const { barriers, workers } = useCluster();
  const waiting = barriers.filter((one) => one.status === "waiting");
  const done = barriers.filter((one) => one.status !== "waiting");
  const columns: Column<Barrier>[] = [
    { key: "name", title: "Barrier", cell: (row) => <span className="font-mono">{row.name}</span> },
    { key: "step", title: "Step", right: true, from: "md", cell: (row) => formatCount(row.step) },
    { key: "task", title: "Task", from: "md", cell: (row) => <TaskName id={row.task_id} /> },
    { key: "status", title: "Status", cell: (row) => <StatusLabel status={row.status} /> },
    { key: "arrived", title: "Arrived", right: true, cell: (row) => `${row.arrived} of ${row.total}` },
    {
      key: "wait",
      title: "Wait",
      right: true,
      from: "sm",
      cell: (row) => formatDuration(row.wait_ms === undefined || row.wait_ms === null ? null : row.wait_ms / 1000),
    },
    { key: "age", title: "Opened", right: true, from: "sm", cell: (row) => formatAge(created(row), now) },
    {
      key: "reason",
      title: "Missing and reason",
      className: "w-full max-w-0 truncate",
      cell: (row) => {
        const words = row.reason || missingNames(row, workers);
        return <span title={words}>{words}</span>;
      },
    },
  ];
  return (
    <>
      <Panel title="Waiting now" note={waiting.length === 0 ? "nobody waits" : undefined}>
        {waiting.length === 0 ? (
          <p className="text-xs text-muted">
            A barrier that blocks shows here, with who is missing and when it was last heard of.
          </p>
        ) : (
          <ul className="flex flex-col gap-3">
            {waiting.map((barrier) => (
              <li key={barrier.id} data-barrier={barrier.id}>
                <p className="flex flex-wrap justify-between gap-x-4 text-xs">
                  <span>
                    <span className="font-mono font-medium">{barrier.name}</span> of{" "}
                    <TaskName id={barrier.task_id} inSentence /> waits for{" "}
                    {missingText(barrier, workers, now) || "members to arrive"}
                  </span>
                  <span className="text-muted">
                    {formatCount(barrier.arrived)} of {formatCount(barrier.total)} · for{" "}
                    {formatDuration((now - (created(barrier) ?? now)) / 1000)}
                  </span>
                </p>
                <ProgressBar
                  className="mt-1.5"
                  value={(100 * barrier.arrived) / Math.max(1, barrier.total)}
                  label={`Arrivals at ${barrier.name}`}
                />
              </li>
            ))}
          </ul>
        )}
      </Panel>
      <Panel title="History" flush>
        {done.length === 0 ? (
          <Empty title={waiting.length > 0 ? "None has ended yet" : "No barrier yet"}>
            They appear when workers call strata.barrier().
          </Empty>
        ) : (
          <Table label="Barriers" rows={done} columns={columns} rowKey={(row) => row.id} />
        )}
      </Panel>
    </>
  );
}
