/**
 * Fetches the points of series that an outline only named, as charts want them: the first charts first, a few at a time.
 * Keeps no more than fit; what was shown longest ago goes. Never asks when everything came with the snapshot.
 */
import type { Series } from "./series";
import { type SeriesStore, seriesStore } from "./series-store";
import { requests } from "./source";

/** The first answer must not wait for the last chart: about six charts of five runs, or as many points of short series. */
const BATCH_POINTS = 32 * 512;
const BATCH = 256;
const AT_ONCE = 2;
const KEEP = 3000;
const RETRY_MS = 2000;

export type AskPoints = (ids: readonly number[], points: number) => ReturnType<ReturnType<typeof requests>["points"]>;

export class PointLoader {
  readonly #kept = new Set<Series>();
  readonly #queue = new Map<Series, number>();
  #inFlight = 0;
  #planned = false;

  constructor(
    readonly store: SeriesStore,
    readonly ask: AskPoints,
  ) {}

  /** Says whether the series has points to show; asks for them, or for more of them, when it has not `points`. */
  want(series: Series, points: number): boolean {
    if (series.detail === Infinity) return series.held;
    if (this.#kept.delete(series)) this.#kept.add(series);
    const enough = series.exact || series.detail >= points;
    if (!enough && !series.asking && !this.#queue.has(series)) {
      this.#queue.set(series, points);
      this.#plan();
    }
    return series.held;
  }

  /** Requests that are under way, and series for which none is yet. */
  get waiting(): number {
    return this.#queue.size + this.#inFlight;
  }

  /** Other series than these are on their way. */
  clear(): void {
    this.#kept.clear();
    this.#queue.clear();
  }

  /** One request for all charts of a frame. */
  #plan(): void {
    if (this.#planned) return;
    this.#planned = true;
    queueMicrotask(() => {
      this.#planned = false;
      this.#send();
    });
  }

  #send(): void {
    while (this.#queue.size > 0 && this.#inFlight < AT_ONCE) {
      const [first] = this.#queue.values();
      const batch: Series[] = [];
      let room = BATCH_POINTS;
      for (const [series, points] of this.#queue) {
        if (points !== first) continue;
        batch.push(series);
        this.#queue.delete(series);
        room -= Math.min(points, series.totalPoints);
        if (room <= 0 || batch.length === BATCH) break;
      }
      this.#inFlight += 1;
      void this.#fetch(batch, first ?? 0);
    }
  }

  async #fetch(batch: readonly Series[], points: number): Promise<void> {
    for (const series of batch) series.ask();
    const ids = batch.map((series) => series.head.id);
    try {
      const answer = await this.ask(ids, points);
      this.store.take(answer, batch, points);
      this.#keep(batch.filter((series) => series.held));
      const missing = batch.filter((series) => answer.missing?.includes(series.head.id));
      if (missing.length > 0) setTimeout(() => this.store.touch(missing), RETRY_MS);
    } catch {
      // The server is away, as the pill says, or has begun anew: charts that are still there ask again.
      for (const series of batch) series.unask();
      setTimeout(() => this.store.touch(batch), RETRY_MS);
    } finally {
      this.#inFlight -= 1;
      this.#send();
    }
  }

  #keep(batch: readonly Series[]): void {
    for (const series of batch) this.#kept.add(series);
    for (const series of this.#kept) {
      if (this.#kept.size <= KEEP) break;
      this.#kept.delete(series);
      series.release();
    }
  }
}

export const pointLoader: PointLoader = new PointLoader(seriesStore, (ids, points) => requests().points(ids, points));
