import type { Checkpoint } from "@/api/wire";
import { Empty } from "@/components/ui/empty";
import { Panel } from "@/components/ui/panel";
import { RunSwatch } from "@/components/ui/run-swatch";
import { StatusLabel } from "@/components/ui/status";
import { type Column, Table } from "@/components/ui/table";
import { useNow } from "@/hooks/now";
import { useShownRuns } from "@/hooks/runs";
import { formatAge, formatBytes, formatCount, formatDuration, formatRate, toMs } from "@/lib/format";
import { displayName, useCatalog } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import { MetricGrid } from "./metric-grid";
import type { MetricEntry } from "./use-metrics";

const ROWS = 200;

export function CheckpointsTab({ metrics }: { metrics: readonly MetricEntry[] }) {
  const now = useNow(5000);
  const runs = useCatalog((state) => state.runs);
  const shown = useShownRuns();
  const all = useCluster((state) => state.checkpoints);
  const runOf = new Map(
    runs.filter((run) => shown.includes(run.run_id)).map((run) => [run.task_id ?? run.run_id, run]),
  );
  const rows = all.filter((one) => runOf.has(one.task_id ?? ""));
  const columns: Column<Checkpoint>[] = [
    {
      key: "run",
      title: "Run",
      cell: (row) => {
        const run = runOf.get(row.task_id ?? "");
        return run ? (
          <span className="flex items-center gap-1.5">
            <RunSwatch run={run.run_id} /> {displayName(run)}
          </span>
        ) : null;
      },
    },
    { key: "step", title: "Step", right: true, cell: (row) => formatCount(row.step) },
    { key: "status", title: "Status", cell: (row) => <StatusLabel status={row.status} /> },
    { key: "size", title: "Size", right: true, cell: (row) => formatBytes(row.size) },
    { key: "save", title: "Save", right: true, from: "md", cell: (row) => formatDuration(row.duration_s) },
    {
      key: "rate",
      title: "MB/s",
      right: true,
      from: "md",
      cell: (row) => formatRate(row.throughput),
    },
    {
      key: "age",
      title: "Created",
      right: true,
      cell: (row) => formatAge(toMs(row.created_at, row.created_at_ms), now),
    },
  ];
  return (
    <>
      <Panel flush>
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
            columns={columns}
            rowKey={(row) => row.id}
          />
        )}
      </Panel>
      {metrics.length > 0 && <MetricGrid metrics={metrics} />}
    </>
  );
}
