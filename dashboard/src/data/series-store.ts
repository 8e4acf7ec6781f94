/** All series of the stream, outside React. Charts subscribe to a metric; lists subscribe to the catalogue of names. */
import type { Delta, OutlineAnswer, PointsAnswer, SeriesHead, Snapshot } from "@/api/wire";
import { OutlineRows } from "./outline-rows";
import { Series } from "./series";

type Listener = () => void;
/** Points of a series as a delta has them, behind the number of its event. */
type Told = [seq: number, id: number, ...columns: Parameters<Series["append"]>];

export class SeriesStore {
  readonly #byId = new Map<number, Series>();
  readonly #byMetric = new Map<string, Series[]>();
  /** What is known of series that nobody has looked at. */
  #outlines: OutlineRows[] = [];
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #catalogListeners = new Set<Listener>();
  readonly #versions = new Map<string, number>();
  #catalogVersion = 0;
  #epoch = "";
  /** False while there are runs whose series nobody has named: then points may come of series that are unknown. */
  #whole = true;
  /** What came of unknown series since an outline was asked for: the answer may have been made before. */
  #early: Told[] | null = null;
  #names: readonly string[] = [];

  /** Points that arrived for a series nobody announced: a bug on the wire worth seeing (Settings shows it). */
  orphans = 0;
  /** All points taken since the page was opened; the pause button counts with it. */
  received = 0;

  reset(snapshot: Pick<Snapshot, "series" | "outline"> & Partial<Snapshot>): void {
    const before = [...this.#byId.values()].filter((series) => series.held);
    this.#epoch = snapshot.epoch ?? "";
    this.#whole = (snapshot.omitted_runs ?? []).length === 0 && snapshot.more_runs !== true;
    this.#early = null;
    this.#byId.clear();
    this.#byMetric.clear();
    for (const wire of snapshot.series) this.#add(wire.id, Series.from(wire));
    this.#outlines = snapshot.outline ? [new OutlineRows(snapshot.outline)] : [];
    this.#lend(before);
    this.#changedCatalog();
    for (const metric of new Set([...this.#listeners.keys(), ...this.#versions.keys()])) this.#notify(metric);
  }

  /** `seq` is the number of its event; without one it is new to everybody. */
  apply(delta: Delta, seq = Infinity): void {
    for (const head of delta.new_series) {
      this.#open(head.metric);
      if (this.#byId.has(head.id)) continue;
      const { total_points: before = 0, ...rest } = head;
      // What came before is the server's to tell: the newest point is in this very delta.
      const nothing = { step: 0, time: 0, value: null };
      this.#add(head.id, before > 0 ? Series.outlined(rest, before, 0, nothing) : new Series(rest));
    }
    if (delta.new_series.length > 0) this.#changedCatalog();
    const touched = new Set(delta.new_series.map((head) => head.metric));
    for (const [id, steps, times, values] of delta.points) {
      const metric = this.#append(seq, id, steps, times, values);
      if (metric === null) {
        if (this.#whole) this.orphans += steps.length;
        continue;
      }
      this.received += steps.length;
      touched.add(metric);
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

  /** Series of runs that the snapshot left out, one answer at a time. Throws like `take`, and when everything was told
   * anew meanwhile. */
  async extend(asked: Promise<OutlineAnswer>): Promise<void> {
    const early: Told[] = [];
    this.#early = early;
    try {
      const { epoch, seq, outline } = await asked;
      if (epoch !== this.#epoch || this.#early !== early)
        throw new Error(`an outline of epoch ${epoch}, the stream is at ${this.#epoch}`);
      const rows = new OutlineRows(outline, seq);
      for (const told of early) rows.append(...told);
      this.#outlines.push(rows);
      this.#changedCatalog();
      for (const metric of outline.metrics) this.#notify(metric);
    } finally {
      if (this.#early === early) this.#early = null;
    }
  }

  /** Tells whoever shows these series to look again. */
  touch(changed: readonly Series[]): void {
    for (const metric of new Set(changed.map((series) => series.head.metric))) this.#notify(metric);
  }

  /** Forgets runs that were deleted. */
  drop(runs: readonly string[]): void {
    const dropped = new Set(runs);
    const gone = [...this.#byId.values()].filter((series) => dropped.has(series.head.run_id));
    const touched = new Set(this.#outlines.flatMap((one) => one.drop(dropped)));
    for (const { head } of gone) {
      this.#byId.delete(head.id);
      touched.add(head.metric);
      const left = (this.#byMetric.get(head.metric) ?? []).filter((series) => series.head.id !== head.id);
      if (left.length > 0) this.#byMetric.set(head.metric, left);
      else this.#byMetric.delete(head.metric);
    }
    if (touched.size > 0) this.#changedCatalog();
    for (const metric of touched) this.#notify(metric);
  }

  of(metric: string): readonly Series[] {
    this.#open(metric);
    return this.#byMetric.get(metric) ?? [];
  }

  /** How many series a run has of a metric; cheaper than `of` where many metrics are asked about. */
  count(metric: string, run: string): number {
    const objects = this.#byMetric.get(metric)?.filter((series) => series.head.run_id === run).length ?? 0;
    const isKnown = (id: number) => this.#byId.has(id);
    return this.#outlines.reduce((sum, one) => sum + one.count(metric, run, isKnown), objects);
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
    const named = new Set(this.#outlines.flatMap((one) => one.names((run) => wanted.has(run))));
    for (const [name, list] of this.#byMetric) {
      if (list.some((series) => wanted.has(series.head.run_id))) named.add(name);
    }
    return this.#names.filter((name) => named.has(name));
  }

  /** Those of which points may be here: the snapshot brought them, or somebody has looked at their metric. */
  seen(): Iterable<Series> {
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

  /** Makes objects of the series of a metric, in the order in which they were told. */
  #open(metric: string): void {
    for (const outline of this.#outlines) {
      for (const series of outline.take(metric)) {
        if (!this.#byId.has(series.head.id)) this.#add(series.head.id, series);
      }
    }
  }

  #append(seq: number, id: number, ...columns: Parameters<Series["append"]>): string | null {
    const series = this.#byId.get(id);
    if (series) {
      if (seq > series.since) series.append(...columns);
      return series.head.metric;
    }
    for (const outline of this.#outlines) {
      const metric = outline.append(seq, id, ...columns);
      if (metric !== null) return metric;
    }
    this.#early?.push([seq, id, ...columns]);
    return null;
  }

  /** What was shown before a reconnect is shown until its points are here again. */
  #lend(before: readonly Series[]): void {
    if (this.#outlines.length === 0) return;
    const known = new Map(before.map((series) => [keyOf(series.head), series]));
    for (const metric of new Set(before.map((series) => series.head.metric))) {
      for (const series of this.of(metric)) {
        const old = known.get(keyOf(series.head));
        if (old) series.borrow(old);
      }
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
    const told = this.#outlines.flatMap((one) => one.names(() => true));
    this.#names = [...new Set([...this.#byMetric.keys(), ...told])].sort();
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
