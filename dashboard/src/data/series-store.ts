/** All series of the stream, outside React. Charts subscribe to a metric; lists subscribe to the catalogue of names. */
import type { Delta, Outline, OutlineAnswer, PointsAnswer, SeriesHead, Snapshot } from "@/api/wire";
import { Series } from "./series";

type Listener = () => void;

export class SeriesStore {
  readonly #byId = new Map<number, Series>();
  readonly #byMetric = new Map<string, Series[]>();
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #catalogListeners = new Set<Listener>();
  readonly #versions = new Map<string, number>();
  #catalogVersion = 0;
  #epoch = "";
  #names: readonly string[] = [];

  /** Points that arrived for a series nobody announced: a bug on the wire worth seeing (Settings shows it). */
  orphans = 0;
  /** All points taken since the page was opened; the pause button counts with it. */
  received = 0;

  reset(snapshot: Pick<Snapshot, "series" | "outline"> & { epoch?: string }): void {
    const before = [...this.#byId.values()].filter((series) => series.held);
    this.#epoch = snapshot.epoch ?? "";
    this.#byId.clear();
    this.#byMetric.clear();
    for (const wire of snapshot.series) this.#add(wire.id, Series.from(wire));
    if (snapshot.outline)
      this.#outline(snapshot.outline, new Map(before.map((series) => [keyOf(series.head), series])));
    this.#changedCatalog();
    for (const metric of new Set([...this.#listeners.keys(), ...this.#versions.keys()])) this.#notify(metric);
  }

  apply(delta: Delta): void {
    for (const head of delta.new_series) {
      if (this.#byId.has(head.id)) continue;
      const { total_points: before = 0, ...rest } = head;
      // What came before is the server's to tell: the newest point is in this very delta.
      const nothing = { step: 0, time: 0, value: null };
      this.#add(head.id, before > 0 ? Series.outlined(rest, before, 0, nothing) : new Series(rest));
    }
    if (delta.new_series.length > 0) this.#changedCatalog();
    const touched = new Set(delta.new_series.map((head) => head.metric));
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

  /** Points that were asked for. Throws when they are of another epoch, where numbers name other series. */
  take(answer: PointsAnswer, asked: readonly Series[], detail: number): void {
    if (answer.epoch !== this.#epoch)
      throw new Error(`points of epoch ${answer.epoch}, the stream is at ${this.#epoch}`);
    const found = new Map(answer.series.map((one) => [one.id, one]));
    const missing = new Set(answer.missing);
    for (const series of asked) {
      if (this.#byId.get(series.head.id) !== series) continue;
      const points = found.get(series.head.id);
      if (points) series.take(points, detail);
      else if (missing.has(series.head.id)) series.unask();
      else series.settle();
    }
    this.touch(asked.filter((series) => !missing.has(series.head.id)));
  }

  /** Series of runs that the snapshot left out. Throws like `take`. */
  extend(answer: OutlineAnswer): void {
    if (answer.epoch !== this.#epoch)
      throw new Error(`an outline of epoch ${answer.epoch}, the stream is at ${this.#epoch}`);
    this.#outline(answer.outline, new Map());
    this.#changedCatalog();
    for (const metric of answer.outline.metrics) this.#notify(metric);
  }

  /** Tells whoever shows these series to look again. */
  touch(changed: readonly Series[]): void {
    for (const metric of new Set(changed.map((series) => series.head.metric))) this.#notify(metric);
  }

  /** Forgets runs that were deleted. */
  drop(runs: readonly string[]): void {
    const gone = [...this.#byId.values()].filter((series) => runs.includes(series.head.run_id));
    for (const { head } of gone) {
      this.#byId.delete(head.id);
      const left = this.of(head.metric).filter((series) => series.head.id !== head.id);
      if (left.length > 0) this.#byMetric.set(head.metric, left);
      else this.#byMetric.delete(head.metric);
    }
    if (gone.length > 0) this.#changedCatalog();
    this.touch(gone);
  }

  of(metric: string): readonly Series[] {
    return this.#byMetric.get(metric) ?? [];
  }

  /** Rises whenever series or points of the metric change. */
  version(metric: string): number {
    return this.#versions.get(metric) ?? 0;
  }

  /** Metric names, sorted; the same array until the catalogue changes. */
  names(): readonly string[] {
    return this.#names;
  }

  /** The names that at least one of these runs has logged, sorted. */
  namesOf(runs: readonly string[]): string[] {
    const wanted = new Set(runs);
    return this.#names.filter((name) => this.of(name).some((series) => wanted.has(series.head.run_id)));
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

  #outline(outline: Outline, before: ReadonlyMap<string, Series>): void {
    for (let i = 0; i < outline.id.length; i += 1) {
      if (this.#byId.has(outline.id[i] ?? 0)) continue;
      const head: SeriesHead = {
        id: outline.id[i] ?? 0,
        run_id: outline.runs[outline.run[i] ?? 0] ?? "",
        metric: outline.metrics[outline.metric[i] ?? 0] ?? "",
        host: outline.hosts[outline.host[i] ?? 0] ?? "",
        rank: outline.rank[i] ?? 0,
        device: outline.device[i] ?? 0,
        unit: outline.units[outline.unit[i] ?? 0] ?? "",
      };
      const newest = { step: outline.step[i] ?? 0, time: outline.time[i] ?? 0, value: outline.value[i] ?? null };
      const series = Series.outlined(head, outline.total_points[i] ?? 0, outline.nan_count[i] ?? 0, newest);
      const old = before.size > 0 ? before.get(keyOf(head)) : undefined;
      if (old) series.borrow(old);
      this.#add(head.id, series);
    }
  }

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
    this.#versions.set(metric, this.version(metric) + 1);
    for (const listener of this.#listeners.get(metric) ?? []) listener();
  }
}

function keyOf({ run_id, metric, host, rank, device }: SeriesHead): string {
  return [run_id, metric, host, rank, device].join("\n");
}

export const seriesStore: SeriesStore = new SeriesStore();
