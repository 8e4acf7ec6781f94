/** Fixed-edge buckets: every compared series shares the same x values, and a new point never moves an old one. */

type Value = number | null;

/** What an array and a column that grows have in common. */
export interface Numbers<T = number> {
  readonly length: number;
  at(place: number): T | undefined;
}

export interface Columns {
  readonly steps: Numbers;
  readonly times: Numbers;
  readonly values: Numbers<Value>;
  readonly min: Numbers<Value>;
  readonly max: Numbers<Value>;
  readonly bad: Numbers;
}

/** A bucketed series: ascending bucket numbers, and per bucket the mean, the extremes and the NaN count. */
export interface Buckets {
  index: number[];
  sum: number[];
  count: number[];
  min: number[];
  max: number[];
  bad: number[];
}

export interface BucketOptions {
  /** x of point i: a step, ms since the run's start, or unix ms. */
  x: Numbers;
  offset?: number;
  width: number;
  from?: number;
  to?: number;
  /** Points older than this (unix ms) are left out, whatever the axis. */
  since?: number;
  /** On a step axis going far back means a restart: the re-done steps replace the first try. */
  rewinds: boolean;
}

/** Late points of parallel writers come a few positions out of order; more than this is a restart. */
const LATE_POINTS = 8;

/** The smallest power of two that keeps `span` within `limit` buckets. */
export function bucketWidth(span: number, limit: number): number {
  if (!(span > 0) || limit < 1) return 1;
  return 2 ** Math.max(0, Math.ceil(Math.log2(span / limit)));
}

export function emptyBuckets(): Buckets {
  return { index: [], sum: [], count: [], min: [], max: [], bad: [] };
}

export function bucketize(columns: Columns, options: BucketOptions): Buckets {
  const { x, offset = 0, width, from = -Infinity, to = Infinity, since = -Infinity, rewinds } = options;
  const out = emptyBuckets();
  for (let i = 0; i < x.length; i += 1) {
    const at = (x.at(i) ?? 0) - offset;
    if (at < from || at > to || (columns.times.at(i) ?? 0) < since) continue;
    const slot = place(out, Math.floor(at / width), rewinds);
    add(out, slot, columns, i);
  }
  return out;
}

/** The slot of a bucket number, made when it is new. */
function place(out: Buckets, bucket: number, rewinds: boolean): number {
  const last = out.index.length - 1;
  const top = out.index[last];
  if (top === undefined || bucket > top) return insert(out, last + 1, bucket);
  if (bucket === top) return last;
  if (!rewinds) return last;
  let slot = last;
  while (slot >= 0 && (out.index[slot] ?? 0) > bucket) slot -= 1;
  const found = out.index[slot] === bucket;
  if (last - slot > LATE_POINTS) {
    truncate(out, found ? slot : slot + 1);
    return insert(out, out.index.length, bucket);
  }
  return found ? slot : insert(out, slot + 1, bucket);
}

function insert(out: Buckets, slot: number, bucket: number): number {
  if (slot === out.index.length) {
    out.index.push(bucket);
    out.sum.push(0);
    out.count.push(0);
    out.min.push(Infinity);
    out.max.push(-Infinity);
    out.bad.push(0);
  } else {
    out.index.splice(slot, 0, bucket);
    out.sum.splice(slot, 0, 0);
    out.count.splice(slot, 0, 0);
    out.min.splice(slot, 0, Infinity);
    out.max.splice(slot, 0, -Infinity);
    out.bad.splice(slot, 0, 0);
  }
  return slot;
}

function truncate(out: Buckets, length: number): void {
  for (const column of [out.index, out.sum, out.count, out.min, out.max, out.bad]) column.length = length;
}

function add(out: Buckets, slot: number, columns: Columns, i: number): void {
  const value = columns.values.at(i) ?? null;
  out.bad[slot] = (out.bad[slot] ?? 0) + (columns.bad.at(i) ?? 0);
  if (value === null) return;
  out.sum[slot] = (out.sum[slot] ?? 0) + value;
  out.count[slot] = (out.count[slot] ?? 0) + 1;
  out.min[slot] = Math.min(out.min[slot] ?? Infinity, columns.min.at(i) ?? value);
  out.max[slot] = Math.max(out.max[slot] ?? -Infinity, columns.max.at(i) ?? value);
}

/** The sorted union of the bucket numbers of all series. */
export function unionIndex(all: readonly Buckets[]): number[] {
  if (all.length === 1) return all[0]?.index ?? [];
  const seen = new Set<number>();
  for (const buckets of all) for (const index of buckets.index) seen.add(index);
  return Array.from(Float64Array.from(seen).sort());
}

export interface Row {
  /** undefined: no point of this series there, the line passes over; null: a gap, every point was NaN. */
  y: (number | null | undefined)[];
  min: (number | undefined)[];
  max: (number | undefined)[];
  bad: number[];
}

/** Lays one or several series (the ranks of a run) onto shared bucket numbers; several give the mean of their means. */
export function alignMean(shared: readonly number[], group: readonly Buckets[]): Row {
  const size = shared.length;
  const row: Row = {
    y: new Array(size),
    min: new Array(size),
    max: new Array(size),
    bad: new Array<number>(size).fill(0),
  };
  const sums = new Float64Array(size);
  const counts = new Float64Array(size);
  for (const buckets of group) {
    let at = 0;
    for (let k = 0; k < buckets.index.length; k += 1) {
      while (at < size && (shared[at] ?? 0) < (buckets.index[k] ?? 0)) at += 1;
      if (at === size) break;
      row.bad[at] = (row.bad[at] ?? 0) + (buckets.bad[k] ?? 0);
      const count = buckets.count[k] ?? 0;
      if (count === 0) {
        if (row.y[at] === undefined) row.y[at] = null;
        continue;
      }
      sums[at] = (sums[at] ?? 0) + (buckets.sum[k] ?? 0) / count;
      counts[at] = (counts[at] ?? 0) + 1;
      row.y[at] = (sums[at] ?? 0) / (counts[at] ?? 1);
      row.min[at] = Math.min(row.min[at] ?? Infinity, buckets.min[k] ?? Infinity);
      row.max[at] = Math.max(row.max[at] ?? -Infinity, buckets.max[k] ?? -Infinity);
    }
  }
  return row;
}
