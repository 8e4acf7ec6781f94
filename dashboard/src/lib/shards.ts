import type { Shard } from "@/api/wire";

export function isReadBy(shard: Shard, worker: string): boolean {
  return shard.readers.some((one) => one.worker_id === worker);
}

/** Everybody who reads any of these shards, in the order of their names. */
export function readersOfAll(shards: readonly Shard[]): string[] {
  const names = new Set(shards.flatMap((shard) => shard.readers.map((one) => one.worker_id)));
  return [...names].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/** Readers whose process is down now: their successors will go on with the same samples. */
export function downReaders(shards: readonly Shard[]): Set<string> {
  const readers = shards.flatMap((shard) => shard.readers);
  return new Set(readers.filter((one) => !one.alive).map((one) => one.worker_id));
}

export function samplesReadBy(shards: readonly Shard[], worker: string): number {
  const parts = shards.flatMap((shard) => shard.readers.filter((one) => one.worker_id === worker));
  return parts.reduce((sum, one) => sum + one.end_index - one.start_index, 0);
}

/** How the table came about, in words. */
export function describeMode(shards: readonly Shard[]): string {
  const first = shards[0];
  const who = first?.task_id ? `task ${first.task_id}` : "plain workers";
  switch (first?.mode) {
    case "lanes":
      return `as the loaders of ${who} read it: colour is the reader, fill is how much it has read this epoch`;
    case "queue":
      return `${who} in queue mode: colour is who took it this epoch, fill is what counts`;
    case "dealt":
      return `as dealt to ${who}: colour is the worker, fill is how much it has read this epoch`;
    case null:
      return "one square per shard; nobody reads this dataset now";
    default:
      return "one square per shard: colour is its worker, fill is how much was read this epoch";
  }
}
