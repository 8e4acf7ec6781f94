import type { ReactNode } from "react";
import type { Worker } from "@/api/wire";
import { Facts } from "@/components/ui/facts";
import { Meter } from "@/components/ui/meter";
import { PageLink } from "@/components/ui/page-link";
import { StatusLabel } from "@/components/ui/status";
import { formatAge, formatBytes, formatCount, formatDuration, UNKNOWN } from "@/lib/format";
import { isLate, whereIs } from "@/lib/workers";

export function WorkerResources({ worker }: { worker: Worker }) {
  const { resources } = worker;
  if (!resources) return <p className="text-xs text-muted">This worker has not reported its resources.</p>;
  return (
    <Facts
      rows={[
        [
          "CPU",
          resources.cpu_percent === null ? UNKNOWN : <Meter key="cpu" value={resources.cpu_percent} label="CPU" />,
        ],
        ["Memory", formatBytes(resources.memory_used_bytes)],
        ...resources.gpu_metrics.map((gpu): [string, ReactNode] => [
          `GPU ${gpu.gpu_id}`,
          <span key={gpu.gpu_id} className="flex flex-wrap gap-x-3">
            {gpu.utilization_percent === null ? (
              <span>{UNKNOWN}</span>
            ) : (
              <Meter value={gpu.utilization_percent} label={`GPU ${gpu.gpu_id}`} />
            )}
            {formatBytes(gpu.memory_used_bytes)} of {formatBytes(gpu.memory_total_bytes)}
            {gpu.temperature_celsius ? ` · ${Math.round(gpu.temperature_celsius)} °C` : ""}
          </span>,
        ]),
        ["Disk", `${formatBytes(resources.disk_read_bytes)} read · ${formatBytes(resources.disk_write_bytes)} written`],
        [
          "Network of its host",
          `${formatBytes(resources.network_rx_bytes)} in · ${formatBytes(resources.network_tx_bytes)} out`,
        ],
      ]}
    />
  );
}

export function WorkerState({ worker, now }: { worker: Worker; now: number }) {
  const late = isLate(worker, now);
  return (
    <Facts
      rows={[
        ["Status", <StatusLabel key="s" status={worker.status} />],
        ...(worker.reason ? ([["Reason", worker.reason]] as const) : []),
        [
          "Heartbeat",
          <span key="h" className={late ? "font-medium text-warn" : ""}>
            {formatAge(worker.last_heartbeat_ms, now)}
          </span>,
        ],
        ["Rank", worker.rank ?? UNKNOWN],
        ["Host", whereIs(worker)],
        ["Step time", formatDuration(worker.step_time_s)],
        ...(worker.section ? ([["Doing", worker.section]] as const) : []),
        ["Epoch / step", `${formatCount(worker.current_epoch)} / ${formatCount(worker.current_step)}`],
        [
          "Shards",
          <PageLink key="d" page="cluster" view={{ clusterTab: "shards" }} className="text-accent hover:underline">
            {formatCount(worker.assigned_shards)}
          </PageLink>,
        ],
        [
          "Task",
          worker.current_task ? (
            <PageLink key="t" page="tasks" id={worker.current_task} className="text-accent hover:underline">
              {worker.current_task}
            </PageLink>
          ) : (
            UNKNOWN
          ),
        ],
      ]}
    />
  );
}
