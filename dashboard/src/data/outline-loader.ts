/** Fetches who the series of a run are when the snapshot had no room for it and somebody looks at the run. */
import { useCatalog } from "@/stores/catalog";
import { seriesStore } from "./series-store";
import { requests } from "./source";

/** A few runs per answer: each may have thousands of series. */
const BATCH = 8;
const RETRY_MS = 2000;

class OutlineLoader {
  readonly #wanted = new Set<string>();
  #busy = false;

  /** Cheap to call while rendering: a run that is here, or on its way, costs one look. */
  want(runs: readonly string[]): void {
    const { omitted } = useCatalog.getState();
    if (omitted.size === 0) return;
    for (const run of runs) if (omitted.has(run)) this.#wanted.add(run);
    if (this.#wanted.size > 0) queueMicrotask(() => void this.#fetch());
  }

  /** Runs whose series are asked for. */
  get waiting(): number {
    return this.#wanted.size;
  }

  /** Another snapshot is on its way. */
  clear(): void {
    this.#wanted.clear();
  }

  async #fetch(): Promise<void> {
    if (this.#busy || this.#wanted.size === 0) return;
    this.#busy = true;
    const batch = [...this.#wanted].slice(0, BATCH);
    try {
      seriesStore.extend(await requests().outline(batch));
      const left = [...useCatalog.getState().omitted].filter((run) => !batch.includes(run));
      useCatalog.setState({ omitted: new Set(left) });
      for (const run of batch) this.#wanted.delete(run);
    } catch {
      // The server is away, as the pill says, or has begun anew: a little later, what is still wanted is asked for.
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    } finally {
      this.#busy = false;
    }
    void this.#fetch();
  }
}

export const outlineLoader: OutlineLoader = new OutlineLoader();
