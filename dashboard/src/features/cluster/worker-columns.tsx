import type { Worker } from "@/api/wire";
import { Meter } from "@/components/ui/meter";
import { PageLink } from "@/components/ui/page-link";
import { StatusLabel } from "@/components/ui/status";
import type { Column } from "@/components/ui/table";
import { formatAge, formatBytes, formatCount, UNKNOWN } from "@/lib/format";
import { isLate, loadOf, whereIs } from "@/lib/workers";

export function workerColumns(now: number): Column<Worker>[] {
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
    { key: "host", title: "Host", from: "md", cell: (row) => whereIs(row) },
    {
      key: "beat",
      title: "Heartbeat",
      right: true,
      cell: (row) => (
        <span className={isLate(row, now) ? "font-medium text-warn" : ""}>{formatAge(row.last_heartbeat_ms, now)}</span>
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
    { key: "shards", title: "Shards", right: true, from: "md", cell: (row) => formatCount(row.assigned_shards) },
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
