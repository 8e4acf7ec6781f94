/**
 * One metric of one run on one rank: columns that grow in place.
 * Of a series that an outline named only the newest point is known, until its points are asked for and `take`n.
 */
import type { Nullable, SeriesHead, SeriesPoints, SnapshotSeries } from "@/api/wire";
import type { Column } from "./column";
import { foldColumns, newColumns, type PointColumns, pushPoint, toColumns } from "./columns";

/** Above the server's own ceiling pairs are folded, so that a page left open all night stays small. */
const MAX_POINTS = 2000;

interface Point {
  step: number;
  time: number;
  value: Nullable<number>;
}

export class Series implements PointColumns {
  #columns: PointColumns | null;
  /** What arrived since the points were asked for; `#askedAt` is the number of points known then. */
  #tail: Point[] | null = null;
  #askedAt = 0;
  /** Points that an answer had before the stream brought them. */
  #ahead = 0;
  #newest: Point | null = null;
  #stub: PointColumns | null = null;
  totalPoints = 0;
  nanCount = 0;
  /** False once a point stands for several: then a zoom is worth a request for more detail. */
  exact = true;
  /** False while only the newest point is known. */
  held = true;
  /** How many points it was asked to show; more are worth a request when it is not exact. */
  detail = Infinity;
  /** The last event of the stream that is in it from the start: an older one brings nothing new. */
  since = -1;

  constructor(
    readonly head: SeriesHead,
    columns: PointColumns | null = newColumns(),
  ) {
    this.#columns = columns;
  }

  static from(wire: SnapshotSeries): Series {
    const { id, run_id, metric, host, rank, device, unit } = wire;
    const exact = wire.total_points <= wire.steps.length;
    const columns = toColumns(exact ? { ...wire, min: null, max: null } : wire);
    const series = new Series({ id, run_id, metric, host, rank, device, unit }, columns);
    series.totalPoints = wire.total_points;
    series.nanCount = wire.nan_count;
    series.exact = exact;
    return series;
  }

  /** A series of which no more is known than its newest point and how many there are. */
  static outlined(head: SeriesHead, total: number, nans: number, newest: Point): Series {
    const series = new Series(head, null);
    series.totalPoints = total;
    series.nanCount = nans;
    series.#newest = newest;
    series.held = false;
    series.exact = false;
    series.detail = 0;
    return series;
  }

  get steps(): Column {
    return this.#shown().steps;
  }
  get times(): Column {
    return this.#shown().times;
  }
  get values(): Column<Nullable<number>> {
    return this.#shown().values;
  }
  get min(): Column<Nullable<number>> {
    return this.#shown().min;
  }
  get max(): Column<Nullable<number>> {
    return this.#shown().max;
  }
  get bad(): Column {
    return this.#shown().bad;
  }
  get length(): number {
    return this.#columns ? this.#columns.steps.length : 1;
  }

  /** True while an answer is awaited. */
  get asking(): boolean {
    return this.#tail !== null;
  }

  append(steps: readonly number[], times: readonly number[], values: readonly Nullable<number>[]): void {
    for (let i = 0; i < steps.length; i += 1) {
      if (this.#ahead > 0) {
        this.#ahead -= 1;
        continue;
      }
      const point = { step: steps[i] ?? 0, time: times[i] ?? 0, value: values[i] ?? null };
      this.#tail?.push(point);
      this.#put(point);
      if (point.value === null) this.nanCount += 1;
      this.totalPoints += 1;
    }
    if (this.#columns && this.length > MAX_POINTS) this.fold();
  }

  /** From now on what arrives is also kept for `take`. */
  ask(): void {
    this.#tail = [];
    this.#askedAt = this.totalPoints;
  }

  /** The request failed. */
  unask(): void {
    this.#tail = null;
  }

  /**
   * Puts an answer in place of what is held. Its total says where in the stream it was read: later points are put after
   * it, and points that it has already are passed over when the stream brings them.
   */
  take(answer: SeriesPoints, detail: number): void {
    const tail = this.#tail;
    if (tail === null) return;
    const columns = toColumns(answer);
    const later = tail.slice(Math.max(0, answer.total_points - this.#askedAt));
    this.#hold(columns, answer.total_points <= columns.steps.length, detail);
    this.#ahead = Math.max(0, answer.total_points - this.totalPoints);
    this.totalPoints += this.#ahead;
    this.nanCount = answer.nan_count + later.filter((point) => point.value === null).length;
    for (const point of later) pushPoint(columns, point.step, point.time, point.value);
  }

  /** The server has no more than we know: the newest point is all there is to show. */
  settle(): void {
    if (this.#tail !== null) this.#hold(this.#shown(), false, Infinity);
  }

  /** Shows the points of the same series before a reconnect until new ones are here. */
  borrow(old: Series): void {
    if (this.#columns === null && old.held) this.#columns = old.#shown();
    this.held = this.#columns !== null;
  }

  /** Gives the points back; the newest one stays. */
  release(): void {
    const last = this.length - 1;
    const { steps, times, values } = this.#shown();
    this.#newest = { step: steps.at(last) ?? 0, time: times.at(last) ?? 0, value: values.at(last) ?? null };
    this.#columns = null;
    this.held = false;
    this.exact = false;
    this.detail = 0;
  }

  /** Halves the points; extremes and NaN counts stay exact. A restart (steps going back) is never folded over. */
  fold(): void {
    foldColumns(this.#shown());
    this.exact = false;
  }

  #hold(columns: PointColumns, exact: boolean, detail: number): void {
    this.#columns = columns;
    this.#stub = null;
    this.#newest = null;
    this.#tail = null;
    this.held = true;
    this.exact = exact;
    this.detail = detail;
  }

  #put(point: Point): void {
    if (this.#columns) pushPoint(this.#columns, point.step, point.time, point.value);
    else {
      this.#newest = point;
      this.#stub = null;
    }
  }

  #shown(): PointColumns {
    if (this.#columns) return this.#columns;
    if (!this.#stub) {
      this.#stub = newColumns();
      if (this.#newest) pushPoint(this.#stub, this.#newest.step, this.#newest.time, this.#newest.value);
    }
    return this.#stub;
  }
}
