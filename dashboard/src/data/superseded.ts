/** Series beside those of the stream: what earlier attempts measured of steps that were done again, and what the runs
 * measured that one was forked from. Asked for when somebody wants to see it, and again when there is more of it. */
import type { SeriesQuery } from "@/api/requests";
import type { RunSeries } from "@/api/wire";
import { requests, sourceKind } from "./source";

const KEEP = 200;
const POINTS = 1000;

class BesideCache {
  readonly #found = new Map<string, { count: number; series: RunSeries[] }>();

  constructor(private readonly query: SeriesQuery) {}

  /** Such series of a metric as far as they are here; `count` is another number whenever there is more of them. */
  get(run: string, metric: string, count: number, onArrival: () => void): readonly RunSeries[] {
    const key = [sourceKind(), run, metric].join("\n");
    const known = this.#found.get(key);
    if (known?.count === count) return known.series;
    const entry = { count, series: known?.series ?? [] };
    this.#found.set(key, entry);
    if (this.#found.size > KEEP) this.#found.delete(this.#found.keys().next().value ?? "");
    requests()
      .series(run, { metric, points: POINTS, ...this.query })
      .then((series) => {
        entry.series = series;
        onArrival();
      })
      // What the stream brought is still true; the next draw with news asks again.
      .catch(() => this.#found.delete(key));
    return entry.series;
  }
}

export const superseded: BesideCache = new BesideCache({ attempts: "superseded" });
export const inherited: BesideCache = new BesideCache({ inherited: true });
