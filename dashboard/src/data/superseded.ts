/** What earlier attempts measured of steps that were done again: asked for when somebody wants to see it, and again when
 * there is more of it. */
import type { RunSeries } from "@/api/wire";
import { requests, sourceKind } from "./source";

const KEEP = 200;
const POINTS = 1000;

class SupersededCache {
  readonly #found = new Map<string, { count: number; series: RunSeries[] }>();

  /** The superseded series of a metric as far as they are here; `count` is how many such points its run has now. */
  get(run: string, metric: string, count: number, onArrival: () => void): readonly RunSeries[] {
    const key = [sourceKind(), run, metric].join("\n");
    const known = this.#found.get(key);
    if (known?.count === count) return known.series;
    const entry = { count, series: known?.series ?? [] };
    this.#found.set(key, entry);
    if (this.#found.size > KEEP) this.#found.delete(this.#found.keys().next().value ?? "");
    requests()
      .series(run, { metric, points: POINTS, attempts: "superseded" })
      .then((series) => {
        entry.series = series;
        onArrival();
      })
      // The newest attempts are still true; the next draw with news asks again.
      .catch(() => this.#found.delete(key));
    return entry.series;
  }
}

export const superseded: SupersededCache = new SupersededCache();
