/** Facts about a worker that several pages state in the same words. */
import type { Barrier, Worker } from "@/api/wire";
import { formatAge, formatCount } from "./format";

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

/** Members that a sentence names: ten thousand are a wall. */
const NAMED = 8;

function nameOf(id: string, worker: Worker | undefined): string {
  return worker ? `rank ${worker.rank} (${id})` : id;
}

/** By rank; workers of a fleet that the page was not told of as they came. */
function listed(
  { missing }: Barrier,
  workers: readonly Worker[],
  separator: string,
  say: (id: string, worker: Worker | undefined) => string,
): string {
  const known = new Map(workers.map((worker) => [worker.id, worker]));
  const rankOf = (id: string) => known.get(id)?.rank ?? Number.MAX_SAFE_INTEGER;
  const ordered = missing.toSorted((a, b) => rankOf(a) - rankOf(b));
  const named = ordered.slice(0, NAMED).map((id) => say(id, known.get(id)));
  const more = missing.length - named.length;
  return [...named, ...(more > 0 ? [`and ${formatCount(more)} more`] : [])].join(separator);
}

/** "rank 7 (job-r7)": three workers may be rank 7, each of its own task. */
export function missingNames(barrier: Barrier, workers: readonly Worker[]): string {
  return listed(barrier, workers, ", ", nameOf);
}

/** The same with when each was last heard of. */
export function missingText(barrier: Barrier, workers: readonly Worker[], now: number): string {
  return listed(barrier, workers, "; ", (id, worker) => {
    const beat = worker?.last_heartbeat_ms ?? null;
    const name = nameOf(id, worker);
    return beat === null ? name : `${name}, last heartbeat ${formatAge(beat, now)}`;
  });
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
