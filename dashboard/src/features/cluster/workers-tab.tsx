import type { Worker } from "@/api/wire";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Meter } from "@/components/ui/meter";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { StatusLabel } from "@/components/ui/status";
import { type Column, Table } from "@/components/ui/table";
import { WorkerGrid } from "@/components/ui/worker-grid";
import { useNow } from "@/hooks/now";
import { formatAge, formatBytes, formatCount, UNKNOWN } from "@/lib/format";
import { heartbeatAt, isLate, loadOf, shardCount } from "@/lib/workers";
import { useCluster } from "@/stores/cluster";

function columns(now: number): Column<Worker>[] {
  return [
    { key: "rank", title: "Rank", right: true, cell: (row) => row.rank ?? UNKNOWN },
    {
      key: "id",
      title: "Worker",
      cell: (row) => (
        <PageLink page="cluster" id={row.id} className="font-medium text-accent hover:underline">
          {row.id}
        </PageLink>
      ),
    },
    { key: "status", title: "Status", cell: (row) => <StatusLabel status={row.status} /> },
    { key: "host", title: "Host", from: "md", cell: (row) => `${row.host ?? row.ip}:${row.port}` },
    {
      key: "beat",
      title: "Heartbeat",
      right: true,
      cell: (row) => (
        <span className={isLate(row, now) ? "font-medium text-bad" : ""}>{formatAge(heartbeatAt(row), now)}</span>
      ),
    },
    {
      key: "use",
      title: "GPU / CPU",
      cell: (row) => {
        const use = loadOf(row);
        return use ? <Meter value={use.percent} label={`${use.kind} of ${row.id}`} /> : UNKNOWN;
      },
    },
    { key: "gpus", title: "GPUs", right: true, from: "lg", cell: (row) => row.gpu_count },
    {
      key: "memory",
      title: "Memory",
      right: true,
      from: "lg",
      cell: (row) => formatBytes(row.resources?.memory_used_bytes),
    },
    { key: "epoch", title: "Epoch", right: true, from: "md", cell: (row) => formatCount(row.current_epoch) },
    { key: "step", title: "Step", right: true, cell: (row) => formatCount(row.current_step) },
    { key: "shards", title: "Shards", right: true, from: "md", cell: (row) => formatCount(shardCount(row)) },
    {
      key: "task",
      title: "Task",
      from: "lg",
      cell: (row) =>
        row.current_task ? (
          <PageLink page="tasks" id={row.current_task} className="text-accent hover:underline">
            {row.current_task}
          </PageLink>
        ) : (
          UNKNOWN
        ),
    },
  ];
}

export function WorkersTab() {
  const now = useNow(1000);
  const { workers, loaded } = useCluster();
  if (!loaded) return <Skeleton rows={8} />;
  if (workers.length === 0) {
    return (
      <Panel>
        <Empty title="No worker has joined">
          Workers appear when a task starts, or when a script calls{" "}
          <code className="font-mono">orch.register_worker(…)</code>.
        </Empty>
      </Panel>
    );
  }
  return (
    <>
      <Panel title="Fleet" note="height of the fill is GPU or CPU use">
        <WorkerGrid workers={workers} />
      </Panel>
      <Panel flush>
        <Table label="Workers" rows={workers} columns={columns(now)} rowKey={(row) => row.id} />
      </Panel>
    </>
  );
}
