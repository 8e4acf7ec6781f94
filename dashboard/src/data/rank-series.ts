/** Single ranks of a metric that has more of them than the stream carries: asked for while somebody looks, again when the
 * ranks that are in the stream have news, and not too often. */
import type { RunSeries } from "@/api/wire";
import { type SeriesStore, seriesStore } from "./series-store";
import { requests, sourceKind } from "./source";

const KEEP = 50;
const POINTS = 1000;
const EVERY_MS = 2000;

interface Entry {
  /** Of the metric in the stream, when it was last asked. */
  version: number;
  askedAt: number;
  asking: boolean;
  series: readonly RunSeries[] | null;
}

export type AskRank = (run: string, metric: string, rank: number) => Promise<RunSeries[]>;

export class RankSeries {
  readonly #found = new Map<string, Entry>();

  constructor(
    readonly store: SeriesStore,
    readonly ask: AskRank,
  ) {}

  /** What the rank has logged, as far as it is here; null before the first answer. Calls back when there is more. */
  get(run: string, metric: string, rank: number, onArrival: () => void): readonly RunSeries[] | null {
    const key = [sourceKind(), run, metric, rank].join("\n");
    const entry = this.#found.get(key) ?? { version: -1, askedAt: -Infinity, asking: false, series: null };
    this.#found.set(key, entry);
    if (this.#found.size > KEEP) this.#found.delete(this.#found.keys().next().value ?? "");
    if (!entry.asking && entry.version !== this.store.version(metric)) {
      entry.asking = true;
      const pause = Math.max(0, entry.askedAt + EVERY_MS - Date.now());
      setTimeout(() => void this.#fetch(entry, run, metric, rank).then(onArrival), pause);
    }
    return entry.series;
  }

  async #fetch(entry: Entry, run: string, metric: string, rank: number): Promise<void> {
    entry.version = this.store.version(metric);
    entry.askedAt = Date.now();
    try {
      entry.series = await this.ask(run, metric, rank);
    } catch {
      entry.version = -1; // what is here is still true; the next draw asks again
    }
    entry.asking = false;
  }
}

export const rankSeries: RankSeries = new RankSeries(seriesStore, (run, metric, rank) =>
  requests().series(run, { metric, rank, points: POINTS }),
);
