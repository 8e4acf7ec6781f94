/** Facts about a worker that several pages state in the same words. */
import type { Barrier, Worker } from "@/api/wire";
import { formatAge, toMs } from "./format";

/** Late is worth a look, not yet a failure: the coordinator gives a worker up at 30 s and then says so itself. */
export const LATE_MS = 10_000;

export function heartbeatAt(worker: Worker): number | null {
  return toMs(worker.last_heartbeat, worker.last_heartbeat_ms);
}

export function isLate(worker: Worker, now: number): boolean {
  const at = heartbeatAt(worker);
  return at !== null && now - at > LATE_MS;
}

/** A worker that listens on no port has none; ":0" would be an address that does not exist. */
export function whereIs(worker: Worker): string {
  const host = worker.host ?? worker.ip;
  return worker.port > 0 ? `${host}:${worker.port}` : host;
}

/** The busier of GPU and CPU, in percent; null when nothing was reported. */
export function loadOf(worker: Worker): { percent: number; kind: "GPU" | "CPU" } | null {
  const { resources } = worker;
  if (!resources) return null;
  const gpus = resources.gpu_metrics;
  if (gpus.length > 0) {
    const percent = gpus.reduce((sum, gpu) => sum + gpu.utilization_percent, 0) / gpus.length;
    return { percent, kind: "GPU" };
  }
  return resources.cpu_percent === null ? null : { percent: resources.cpu_percent, kind: "CPU" };
}

export function shardCount(worker: Worker): number | null {
  const shards: unknown = worker.assigned_shards;
  return Array.isArray(shards) ? shards.length : typeof shards === "number" ? shards : null;
}

function nameOf(entry: Barrier["missing"][number], workers: readonly Worker[]): string {
  const id = typeof entry === "string" ? entry : entry.worker_id;
  const rank = (typeof entry === "string" ? null : entry.rank) ?? workers.find((one) => one.id === id)?.rank ?? null;
  return rank === null ? id : `rank ${rank} (${id})`;
}

/** "rank 7 (job-r7)": three workers may be rank 7, each of its own task. */
export function missingNames(barrier: Barrier, workers: readonly Worker[]): string {
  return barrier.missing.map((entry) => nameOf(entry, workers)).join(", ");
}

/** The same with when each was last heard of. */
export function missingText(barrier: Barrier, workers: readonly Worker[], now: number): string {
  return barrier.missing
    .map((entry) => {
      const id = typeof entry === "string" ? entry : entry.worker_id;
      const worker = workers.find((one) => one.id === id);
      const beat =
        (typeof entry === "string" ? null : entry.last_heartbeat_ms) ?? (worker ? heartbeatAt(worker) : null);
      const name = nameOf(entry, workers);
      return beat === null ? name : `${name}, last heartbeat ${formatAge(beat, now)}`;
    })
    .join("; ");
}

/** "5 active · 1 failed": what there is, in the order of good to bad. */
export function countText(workers: readonly Worker[]): string {
  const order = ["active", "checkpointing", "recovering", "idle", "failed"] as const;
  return order
    .map((status) => [status, workers.filter((worker) => worker.status === status).length] as const)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count} ${status}`)
    .join(" · ");
}
