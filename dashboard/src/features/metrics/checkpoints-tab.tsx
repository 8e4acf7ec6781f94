import type { RunInfo } from "@/api/wire";
import { Empty } from "@/components/ui/empty";
import { Panel } from "@/components/ui/panel";
import { RunSwatch } from "@/components/ui/run-swatch";
import { StatusLabel } from "@/components/ui/status";
import { type Column, Table } from "@/components/ui/table";
import { seriesStore } from "@/data/series-store";
import { useNow } from "@/hooks/now";
import { useResource } from "@/hooks/resource";
import { useRunsOnShow } from "@/hooks/runs";
import { formatAge, formatBytes, formatCount, formatDuration, formatRate } from "@/lib/format";
import { displayName } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import { loggedRow, ownRow, type Row } from "./checkpoint-rows";
import { MetricGrid } from "./metric-grid";
import type { MetricEntry } from "./use-metrics";

const ROWS = 200;

/** Asked again now and then: the stream brings the points of these metrics, but not their tags. */
function useLogged(runs: readonly RunInfo[], metrics: readonly MetricEntry[]): Row[] {
  const writers = runs.filter((run) =>
    metrics.some(({ name }) => seriesStore.of(name).some((series) => series.head.run_id === run.run_id)),
  );
  const { data } = useResource(
    ["checkpoint-rows", ...writers.map((run) => run.run_id)],
    (it, signal) => Promise.all(writers.map((run) => it.checkpointRows(run.run_id, signal))),
    { everyMs: 5000, enabled: writers.length > 0 },
  );
  return writers.flatMap((run, i) => (data?.[i] ?? []).map((one, place) => loggedRow(one, run, place)));
}

const COLUMNS: Column<Row>[] = [
  {
    key: "run",
    title: "Run",
    cell: ({ run }) => (
      <span className="flex items-center gap-1.5">
        <RunSwatch run={run.run_id} /> {displayName(run)}
      </span>
    ),
  },
  { key: "step", title: "Step", right: true, cell: (row) => formatCount(row.step) },
  { key: "status", title: "Status", cell: (row) => <StatusLabel status={row.status} /> },
  { key: "size", title: "Size", right: true, cell: (row) => formatBytes(row.size) },
  { key: "save", title: "Save", right: true, from: "md", cell: (row) => formatDuration(row.seconds) },
  { key: "rate", title: "MB/s", right: true, from: "md", cell: (row) => formatRate(row.rate) },
  { key: "age", title: "Created", right: true, cell: (row) => <Age ms={row.created} /> },
  {
    key: "detail",
    title: "Path, or what its writer logged",
    className: "w-full max-w-0 min-w-52 truncate font-mono",
    cell: (row) => <span title={row.detail}>{row.detail}</span>,
  },
];

function Age({ ms }: { ms: number | null }) {
  return formatAge(ms, useNow(5000));
}

export function CheckpointsTab({ metrics }: { metrics: readonly MetricEntry[] }) {
  const runs = useRunsOnShow();
  const all = useCluster((state) => state.checkpoints);
  const logged = useLogged(runs, metrics);
  const runOf = new Map(runs.map((run) => [run.task_id ?? run.run_id, run]));
  const own = all.flatMap((one) => {
    const run = runOf.get(one.task_id ?? "");
    return run ? [ownRow(one, run)] : [];
  });
  const rows = [...own, ...logged].sort((a, b) => (b.created ?? 0) - (a.created ?? 0));
  return (
    <>
      <Panel
        title="Checkpoints"
        flush
        note={rows.length > ROWS ? `the newest ${ROWS} of ${formatCount(rows.length)}` : undefined}
      >
        {rows.length === 0 ? (
          <Empty title="No checkpoints of the runs on show">
            {all.length > 0
              ? "Other runs have some: choose them above."
              : "They appear here as soon as a worker saves one."}
          </Empty>
        ) : (
          <Table
            label="Checkpoints of the runs on show"
            rows={rows.slice(0, ROWS)}
            columns={COLUMNS}
            rowKey={(row) => row.key}
          />
        )}
      </Panel>
      {metrics.length > 0 && <MetricGrid metrics={metrics} />}
    </>
  );
}
