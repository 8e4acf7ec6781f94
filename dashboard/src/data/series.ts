/** One metric of one run on one rank: plain columns that grow in place. Ordinary arrays, because uPlot needs null. */
import type { Nullable, SeriesColumns, SeriesHead, SnapshotSeries } from "@/api/wire";

/** Above this many points, pairs are folded: twice the server's own ceiling of 2,000, so a fold is rare. */
const FOLD_AT = 4000;

function noColumns(): SeriesColumns {
  return { steps: [], times: [], values: [], min: [], max: [], bad: [] };
}

export class Series implements SeriesColumns {
  readonly steps: number[];
  readonly times: number[];
  readonly values: Nullable<number>[];
  readonly min: Nullable<number>[];
  readonly max: Nullable<number>[];
  readonly bad: number[];
  totalPoints = 0;
  nanCount = 0;
  /** False once a point stands for several: then a zoom is worth a request for more detail. */
  exact = true;

  constructor(
    readonly head: SeriesHead,
    columns: SeriesColumns = noColumns(),
  ) {
    this.steps = columns.steps;
    this.times = columns.times;
    this.values = columns.values;
    this.min = columns.min;
    this.max = columns.max;
    this.bad = columns.bad;
  }

  /** Takes the arrays as they are: a snapshot may hold 20,000 series, and nobody else keeps them. */
  static from(wire: SnapshotSeries): Series {
    const { id, run_id, metric, host, rank, device, unit } = wire;
    const series = new Series({ id, run_id, metric, host, rank, device, unit }, wire);
    series.totalPoints = wire.total_points;
    series.nanCount = wire.nan_count;
    series.exact = wire.total_points <= wire.steps.length;
    return series;
  }

  get length(): number {
    return this.steps.length;
  }

  append(steps: readonly number[], times: readonly number[], values: readonly Nullable<number>[]): void {
    for (let i = 0; i < steps.length; i += 1) {
      const value = values[i] ?? null;
      this.steps.push(steps[i] ?? 0);
      this.times.push(times[i] ?? 0);
      this.values.push(value);
      this.min.push(value);
      this.max.push(value);
      this.bad.push(value === null ? 1 : 0);
      if (value === null) this.nanCount += 1;
    }
    this.totalPoints += steps.length;
    if (this.length > FOLD_AT) this.fold();
  }

  /** Halves the points; extremes and NaN counts stay exact. A restart (steps going back) is never folded over. */
  fold(): void {
    let out = 0;
    for (let i = 0; i < this.length; out += 1) {
      const next = i + 1;
      const pair = next < this.length && (this.steps[next] ?? 0) >= (this.steps[i] ?? 0);
      const j = pair ? next : i;
      this.#write(out, i, j);
      i = j + 1;
    }
    for (const column of [this.steps, this.times, this.values, this.min, this.max, this.bad]) column.length = out;
    this.exact = false;
  }

  #write(out: number, i: number, j: number): void {
    const [a, b] = [this.values[i] ?? null, this.values[j] ?? null];
    this.steps[out] = this.steps[j] ?? 0;
    this.times[out] = this.times[j] ?? 0;
    this.values[out] = a === null ? b : b === null ? a : (a + b) / 2;
    this.min[out] = lower(this.min[i] ?? null, this.min[j] ?? null);
    this.max[out] = upper(this.max[i] ?? null, this.max[j] ?? null);
    this.bad[out] = i === j ? (this.bad[i] ?? 0) : (this.bad[i] ?? 0) + (this.bad[j] ?? 0);
  }
}

function lower(a: Nullable<number>, b: Nullable<number>): Nullable<number> {
  return a === null ? b : b === null ? a : Math.min(a, b);
}
function upper(a: Nullable<number>, b: Nullable<number>): Nullable<number> {
  return a === null ? b : b === null ? a : Math.max(a, b);
}
