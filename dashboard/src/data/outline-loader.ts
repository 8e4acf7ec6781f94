/** Fetches who the series of a run are when the snapshot left them out and somebody looks at the run. */
import { after } from "@/lib/after";
import { isOmitted, useCatalog } from "@/stores/catalog";
import { opening } from "./opening";
import { seriesStore } from "./series-store";
import { requests } from "./source";

/** A few runs per answer: each may have thousands of series. */
const BATCH = 8;
const RETRY_MS = 2000;

class OutlineLoader {
  readonly #wanted = new Set<string>();
  #busy = false;

  /** Cheap to call while rendering: a run that is here, or on its way, costs one look. */
  want(runs: Iterable<string>): void {
    const catalog = useCatalog.getState();
    if (catalog.outlined === null) return;
    for (const run of runs) if (isOmitted(catalog, run)) this.#wanted.add(run);
    if (this.#wanted.size > 0) void this.#start();
  }

  /** Runs whose series are asked for. */
  get waiting(): number {
    return this.#wanted.size;
  }

  /** Another snapshot is on its way. */
  clear(): void {
    this.#wanted.clear();
  }

  /** The charts on screen come first, with the runs that are here. */
  async #start(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    await opening.rested();
    while (this.#wanted.size > 0) await this.#fetch([...this.#wanted].slice(0, BATCH));
    this.#busy = false;
  }

  async #fetch(batch: readonly string[]): Promise<void> {
    try {
      await seriesStore.extend(requests().outline(batch));
      useCatalog.setState(({ outlined }) => ({ outlined: outlined && new Set([...outlined, ...batch]) }));
      for (const run of batch) this.#wanted.delete(run);
    } catch {
      // The server is away, as the pill says, or has begun anew: a little later, what is still wanted is asked for.
      await after(RETRY_MS);
    }
  }
}

export const outlineLoader: OutlineLoader = new OutlineLoader();
