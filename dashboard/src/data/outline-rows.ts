/**
 * The series of an outline, as the columns that came. One of ten thousand metrics × twenty runs becomes an object when
 * somebody looks at its metric; until then its newest point is kept up to date in the columns.
 */
import type { Nullable, Outline, SeriesHead } from "@/api/wire";
import { Series } from "./series";

export class OutlineRows {
  readonly #outline: Outline;
  /** The last event of the stream that is in it. */
  readonly #since: number;
  readonly #codes: ReadonlyMap<string, number>;
  /** Rows in order of their metric; those of metric m begin at #starts[m]. */
  readonly #order: Uint32Array;
  readonly #starts: Uint32Array;
  /** By metric: 1 when its series are objects. */
  readonly #taken: Uint8Array;
  /** By run: 1 when it was deleted. */
  readonly #dropped: Uint8Array;
  /** By a series' number: its row, counted from 1. Made for the first point that comes. */
  #places: Uint32Array | null = null;

  constructor(outline: Outline, since = -1) {
    this.#outline = outline;
    this.#since = since;
    this.#codes = new Map(outline.metrics.map((name, code) => [name, code]));
    this.#taken = new Uint8Array(outline.metrics.length);
    this.#dropped = new Uint8Array(outline.runs.length);
    this.#starts = startsOf(outline.metric, outline.metrics.length);
    this.#order = orderOf(outline.metric, this.#starts);
  }

  /** Metrics of which a run that is wanted has a series, as far as those are no objects. */
  names(wanted: (run: string) => boolean): string[] {
    const { runs, metrics, run, metric } = this.#outline;
    const asked = Uint8Array.from(runs, (id, code) => Number(this.#dropped[code] === 0 && wanted(id)));
    const found = new Uint8Array(metrics.length);
    for (let row = 0; row < run.length; row += 1) {
      if (asked[run[row] ?? 0] === 1) found[metric[row] ?? 0] = 1;
    }
    return metrics.filter((_, code) => found[code] === 1 && this.#taken[code] === 0);
  }

  /** How many series a run has of a metric, but for those that are known otherwise. */
  count(metric: string, run: string, isKnown: (id: number) => boolean): number {
    const { runs, run: codes, id } = this.#outline;
    const own = this.#rowsOf(metric).filter((row) => runs[codes[row] ?? 0] === run);
    return own.filter((row) => !isKnown(id[row] ?? 0)).length;
  }

  /** Makes objects of the series of a metric: once. */
  take(metric: string): Series[] {
    const rows = this.#rowsOf(metric);
    const code = this.#codes.get(metric);
    if (code !== undefined) this.#taken[code] = 1;
    return rows.map((row) => this.#series(row));
  }

  /** New points of a series that is no object, from the event `seq` of the stream; those that are older than the outline
   * are in it. Says of which metric they are; null: it is not one of these. */
  append(
    seq: number,
    id: number,
    steps: readonly number[],
    times: readonly number[],
    values: readonly Nullable<number>[],
  ): string | null {
    const { metrics, metric, run, total_points, nan_count, step, time, value } = this.#outline;
    const row = (this.#rows()[id] ?? 0) - 1;
    const code = metric[row];
    if (code === undefined || this.#taken[code] === 1 || this.#dropped[run[row] ?? 0] === 1) return null;
    if (seq <= this.#since) return metrics[code] ?? null;
    const last = steps.length - 1;
    total_points[row] = (total_points[row] ?? 0) + steps.length;
    nan_count[row] = (nan_count[row] ?? 0) + values.filter((one) => one === null).length;
    step[row] = steps[last] ?? 0;
    time[row] = times[last] ?? 0;
    value[row] = values[last] ?? null;
    return metrics[code] ?? null;
  }

  /** Forgets runs, and says which metrics they had. */
  drop(gone: ReadonlySet<string>): string[] {
    const touched = this.names((run) => gone.has(run));
    for (const [code, run] of this.#outline.runs.entries()) if (gone.has(run)) this.#dropped[code] = 1;
    return touched;
  }

  #rowsOf(metric: string): number[] {
    const code = this.#codes.get(metric);
    if (code === undefined || this.#taken[code] === 1) return [];
    const rows = this.#order.subarray(this.#starts[code], this.#starts[code + 1]);
    return Array.from(rows).filter((row) => this.#dropped[this.#outline.run[row] ?? 0] === 0);
  }

  #rows(): Uint32Array {
    if (this.#places === null) {
      const { id } = this.#outline;
      this.#places = new Uint32Array(id.reduce((top, one) => Math.max(top, one), -1) + 1);
      for (let row = 0; row < id.length; row += 1) this.#places[id[row] ?? 0] = row + 1;
    }
    return this.#places;
  }

  #series(row: number): Series {
    const it = this.#outline;
    const head: SeriesHead = {
      id: it.id[row] ?? 0,
      run_id: it.runs[it.run[row] ?? 0] ?? "",
      metric: it.metrics[it.metric[row] ?? 0] ?? "",
      host: it.hosts[it.host[row] ?? 0] ?? "",
      rank: it.rank[row] ?? 0,
      device: it.device[row] ?? 0,
      unit: it.units[it.unit[row] ?? 0] ?? "",
    };
    const newest = { step: it.step[row] ?? 0, time: it.time[row] ?? 0, value: it.value[row] ?? null };
    const series = Series.outlined(head, it.total_points[row] ?? 0, it.nan_count[row] ?? 0, newest);
    series.since = this.#since;
    return series;
  }
}

/** Where the rows of each code begin once they are in order, and after the last where they end. */
function startsOf(codes: readonly number[], count: number): Uint32Array {
  const starts = new Uint32Array(count + 1);
  for (const code of codes) starts[code + 1] = (starts[code + 1] ?? 0) + 1;
  for (let code = 0; code < count; code += 1) starts[code + 1] = (starts[code + 1] ?? 0) + (starts[code] ?? 0);
  return starts;
}

function orderOf(codes: readonly number[], starts: Uint32Array): Uint32Array {
  const next = starts.slice();
  const order = new Uint32Array(codes.length);
  for (let row = 0; row < codes.length; row += 1) {
    const code = codes[row] ?? 0;
    const at = next[code] ?? 0;
    order[at] = row;
    next[code] = at + 1;
  }
  return order;
}
