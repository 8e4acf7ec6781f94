import { useState } from "react";
import type { Worker } from "@/api/wire";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Input } from "@/components/ui/input";
import { Meter } from "@/components/ui/meter";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { StatusLabel } from "@/components/ui/status";
import { type Column, Table } from "@/components/ui/table";
import { WorkerGrid } from "@/components/ui/worker-grid";
import { useNow } from "@/hooks/now";
import { formatAge, formatBytes, formatCount, UNKNOWN } from "@/lib/format";
import { countText, isLate, loadOf, whereIs } from "@/lib/workers";
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

/** A table refreshed each second stays light; the filter reaches everybody. */
const ROWS = 200;

export function WorkersTab() {
  const [filter, setFilter] = useState("");
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
  const needle = filter.toLowerCase();
  const found = workers.filter((one) =>
    `${one.id} ${one.host ?? ""} ${one.status} ${one.current_task ?? ""}`.toLowerCase().includes(needle),
  );
  const note = found.length > ROWS ? `the first ${ROWS} of ${formatCount(found.length)}` : countText(workers);
  return (
    <>
      <Panel title="Fleet" note="height of the fill is GPU or CPU use">
        <WorkerGrid workers={workers} />
      </Panel>
      <Panel
        title="Workers"
        note={note}
        flush
        actions={
          <Input
            type="search"
            aria-label="Filter workers"
            placeholder="Filter by id, host, status, task"
            value={filter}
            onChange={(event) => setFilter(event.target.value)}
            className="w-56"
          />
        }
      >
        <Table label="Workers" rows={found.slice(0, ROWS)} columns={columns(now)} rowKey={(row) => row.id} />
      </Panel>
    </>
  );
}
