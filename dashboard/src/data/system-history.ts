/** The last minutes of the coordinator's own numbers, sampled here because the API gives only the present. */
import type { Nullable, SystemMetrics } from "@/api/wire";
import { SYSTEM_FIGURES, type SystemKey } from "@/lib/system-figures";

const SYSTEM_KEYS: readonly SystemKey[] = SYSTEM_FIGURES.map((figure) => figure.key);

const KEEP = 900;

export class SystemHistory {
  readonly times: number[] = [];
  readonly values: Record<SystemKey, Nullable<number>[]> = {
    checkpoint_throughput: [],
    coordinator_rps: [],
    barrier_latency_p99: [],
    shard_assignment_time: [],
  };
  readonly #listeners = new Set<() => void>();

  /** null metrics leave a gap: while the stream is away nothing is known. */
  sample(time: number, metrics: SystemMetrics | null): void {
    this.times.push(time);
    for (const key of SYSTEM_KEYS) this.values[key].push(metrics?.[key] ?? null);
    if (this.times.length > KEEP) {
      this.times.shift();
      for (const key of SYSTEM_KEYS) this.values[key].shift();
    }
    for (const listener of this.#listeners) listener();
  }

  clear(): void {
    this.times.length = 0;
    for (const key of SYSTEM_KEYS) this.values[key].length = 0;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

export const systemHistory: SystemHistory = new SystemHistory();
