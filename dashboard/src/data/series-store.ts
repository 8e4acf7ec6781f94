/** All series of the stream, outside React. Charts subscribe to a metric; lists subscribe to the catalogue of names. */
import type { Delta, Snapshot } from "@/api/wire";
import { Series } from "./series";

type Listener = () => void;

export class SeriesStore {
  readonly #byId = new Map<number, Series>();
  readonly #byMetric = new Map<string, Series[]>();
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #catalogListeners = new Set<Listener>();
  #catalogVersion = 0;
  #names: readonly string[] = [];

  /** Points that arrived for a series nobody announced: a bug on the wire worth seeing (Settings shows it). */
  orphans = 0;
  /** All points taken since the page was opened; the pause button counts with it. */
  received = 0;

  reset(snapshot: Pick<Snapshot, "series">): void {
    this.#byId.clear();
    this.#byMetric.clear();
    for (const wire of snapshot.series) this.#add(wire.id, Series.from(wire));
    this.#changedCatalog();
    for (const metric of this.#listeners.keys()) this.#notify(metric);
  }

  apply(delta: Delta): void {
    for (const head of delta.new_series) {
      if (!this.#byId.has(head.id)) this.#add(head.id, new Series(head));
    }
    if (delta.new_series.length > 0) this.#changedCatalog();
    const touched = new Set<string>();
    for (const [id, steps, times, values] of delta.points) {
      const series = this.#byId.get(id);
      if (!series) {
        this.orphans += steps.length;
        continue;
      }
      series.append(steps, times, values);
      this.received += steps.length;
      touched.add(series.head.metric);
    }
    for (const metric of touched) this.#notify(metric);
  }

  of(metric: string): readonly Series[] {
    return this.#byMetric.get(metric) ?? [];
  }

  /** Metric names, sorted; the same array until the catalogue changes. */
  names(): readonly string[] {
    return this.#names;
  }

  all(): Iterable<Series> {
    return this.#byId.values();
  }

  catalogVersion = (): number => this.#catalogVersion;

  subscribe(metric: string, listener: Listener): () => void {
    let set = this.#listeners.get(metric);
    if (!set) {
      set = new Set();
      this.#listeners.set(metric, set);
    }
    set.add(listener);
    return () => {
      set.delete(listener);
      if (set.size === 0) this.#listeners.delete(metric);
    };
  }

  subscribeCatalog = (listener: Listener): (() => void) => {
    this.#catalogListeners.add(listener);
    return () => this.#catalogListeners.delete(listener);
  };

  #add(id: number, series: Series): void {
    this.#byId.set(id, series);
    const list = this.#byMetric.get(series.head.metric);
    if (list) list.push(series);
    else this.#byMetric.set(series.head.metric, [series]);
  }

  #changedCatalog(): void {
    this.#catalogVersion += 1;
    this.#names = [...this.#byMetric.keys()].sort();
    for (const listener of this.#catalogListeners) listener();
  }

  #notify(metric: string): void {
    for (const listener of this.#listeners.get(metric) ?? []) listener();
  }
}

export const seriesStore: SeriesStore = new SeriesStore();
