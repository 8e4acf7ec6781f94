/** Facts about a worker that several pages state in the same words. */
import type { Barrier, Worker } from "@/api/wire";
import { formatAge } from "./format";

/** Late is worth a look, not yet a failure: the coordinator gives a worker up at 30 s and then says so itself. */
export const LATE_MS = 10_000;

export function isLate(worker: Worker, now: number): boolean {
  const at = worker.last_heartbeat_ms;
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
  const gpus = resources.gpu_metrics.map((gpu) => gpu.utilization_percent).filter((percent) => percent !== null);
  if (gpus.length > 0) {
    const percent = gpus.reduce((sum, one) => sum + one, 0) / gpus.length;
    return { percent, kind: "GPU" };
  }
  return resources.cpu_percent === null ? null : { percent: resources.cpu_percent, kind: "CPU" };
}

function nameOf(id: string, worker: Worker | undefined): string {
  return worker ? `rank ${worker.rank} (${id})` : id;
}

/** "rank 7 (job-r7)": three workers may be rank 7, each of its own task. */
export function missingNames(barrier: Barrier, workers: readonly Worker[]): string {
  return barrier.missing
    .map((id) =>
      nameOf(
        id,
        workers.find((one) => one.id === id),
      ),
    )
    .join(", ");
}

/** The same with when each was last heard of. */
export function missingText(barrier: Barrier, workers: readonly Worker[], now: number): string {
  return barrier.missing
    .map((id) => {
      const worker = workers.find((one) => one.id === id);
      const beat = worker ? worker.last_heartbeat_ms : null;
      const name = nameOf(id, worker);
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
