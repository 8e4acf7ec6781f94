/** From the store's columns to what a chart draws. Pure: same series and options, same plot. */
import { alignMean, type Buckets, bucketize, bucketWidth, type Columns, type Row, unionIndex } from "@/lib/buckets";
import { smooth } from "@/lib/smoothing";
import type { RankMode, XKind } from "@/lib/view-codec";

export interface PlotSeries {
  head: { run_id: string; rank: number; device: number; host: string; unit: string };
  columns: Columns;
  /** Unix ms at which the run began, for the relative axis. */
  start: number;
  /** The earlier attempt that measured these points, which a later one did again; null for what counts. */
  attempt?: number | null;
}

export interface PlotOptions {
  x: XKind;
  ranks: RankMode;
  smoothing: number;
  logY: boolean;
  /** Unix ms; older points are outside the timeline. */
  since: number;
  zoom: readonly [number, number] | null;
  maxBuckets: number;
}

export interface Line extends Row {
  key: string;
  run: string;
  rank: number | null;
  /** Not null: superseded points of that attempt. */
  attempt: number | null;
  /** What is drawn on top when smoothing is on; else the same array as y. */
  smooth: (number | null | undefined)[];
}

export interface Plot {
  /** Step, ms since start, or unix ms. */
  x: number[];
  lines: Line[];
  /** Bucket width; 1 (or one point per bucket) means that every point is drawn. */
  width: number;
  unit: string;
}

export function buildPlot(series: readonly PlotSeries[], options: PlotOptions): Plot {
  const groups = group(series, options.ranks);
  const width = chooseWidth(series, options);
  const bucketed = groups.map(({ members }) => members.map((one) => cut(one, options, width)));
  const shared = unionIndex(bucketed.flat());
  const x = shared.map((index) => index * width);
  const lines = groups.map(({ key, run, rank, attempt }, i): Line => {
    const row = alignMean(shared, bucketed[i] ?? []);
    if (options.logY) hideNonPositive(row);
    const smoothed = options.smoothing > 0 ? smooth(x, row.y, options.smoothing, options.logY) : row.y;
    return { key, run, rank, attempt, smooth: smoothed, ...row };
  });
  return { x, lines, width, unit: series.find((one) => one.head.unit)?.head.unit ?? "" };
}

function axisOf(series: PlotSeries, x: XKind): { values: readonly number[]; offset: number } {
  if (x === "step") return { values: series.columns.steps, offset: 0 };
  return { values: series.columns.times, offset: x === "rel" ? series.start : 0 };
}

function cut(series: PlotSeries, options: PlotOptions, width: number): Buckets {
  const { values, offset } = axisOf(series, options.x);
  // One bucket more on both sides, so that lines run to the edges of a zoomed chart.
  const [from, to] = options.zoom ?? [-Infinity, Infinity];
  return bucketize(series.columns, {
    x: values,
    offset,
    width,
    from: from - width,
    to: to + width,
    since: options.since,
    rewinds: options.x === "step",
  });
}

/** What lies inside timeline and zoom: extent and number of points of one series. */
function extent(series: PlotSeries, options: PlotOptions): { low: number; high: number; inside: number } {
  const { values, offset } = axisOf(series, options.x);
  const [from, to] = options.zoom ?? [-Infinity, Infinity];
  const out = { low: Infinity, high: -Infinity, inside: 0 };
  for (let i = 0; i < values.length; i += 1) {
    const at = (values[i] ?? 0) - offset;
    if (at < from || at > to || (series.columns.times[i] ?? 0) < options.since) continue;
    if (at < out.low) out.low = at;
    if (at > out.high) out.high = at;
    out.inside += 1;
  }
  return out;
}

/** Fine enough for the longest run, coarse enough for one shared x array. Few points are drawn as they are. */
function chooseWidth(series: readonly PlotSeries[], options: PlotOptions): number {
  let longest = 0;
  let most = 0;
  const spans = new Map<string, number>();
  for (const one of series) {
    const { low, high, inside } = extent(one, options);
    if (inside === 0) continue;
    longest = Math.max(longest, high - low);
    most = Math.max(most, inside);
    spans.set(one.head.run_id, Math.max(spans.get(one.head.run_id) ?? 0, high - low));
  }
  // Runs of different days share no bucket, so it is the sum of their spans that fills the x array.
  const total = [...spans.values()].reduce((sum, span) => sum + span, 0);
  const wanted = Math.max(
    bucketWidth(longest, options.maxBuckets),
    bucketWidth(total, options.maxBuckets * MAX_RUNS_APART),
  );
  // Ranks log at slightly different moments: on a time axis a bucket must be as wide as their common beat to average them.
  if (series.length > 1 && options.x !== "step") return Math.max(wanted, bucketWidth(longest, Math.max(most, 1)));
  return most <= options.maxBuckets ? 1 : wanted;
}

const MAX_RUNS_APART = 6;

interface Group {
  key: string;
  run: string;
  rank: number | null;
  attempt: number | null;
  members: PlotSeries[];
}

/** Runs as they came; the ranks of a run in their order, whichever was heard of first. */
function group(series: readonly PlotSeries[], ranks: RankMode) {
  const places = new Map([...new Set(series.map((one) => one.head.run_id))].map((run, place) => [run, place]));
  const place = (run: string) => places.get(run) ?? 0;
  const groups = new Map<string, Group>();
  for (const one of series) {
    const { run_id: run, rank, device, host } = one.head;
    const attempt = one.attempt ?? null;
    const own = ranks === "mean" ? run : `${run}\n${host}\n${rank}\n${device}`;
    const key = attempt === null ? own : `${own}\nattempt ${attempt}`;
    const found = groups.get(key);
    if (found) found.members.push(one);
    else groups.set(key, { key, run, rank: ranks === "mean" ? null : rank, attempt, members: [one] });
  }
  return [...groups.values()].sort((a, b) => place(a.run) - place(b.run) || (a.rank ?? 0) - (b.rank ?? 0));
}

function hideNonPositive(row: Row): void {
  for (let i = 0; i < row.y.length; i += 1) {
    const value = row.y[i];
    if (typeof value === "number" && value <= 0) row.y[i] = null;
    if ((row.min[i] ?? 1) <= 0) row.min[i] = row.y[i] ?? undefined;
    if ((row.max[i] ?? 1) <= 0) row.max[i] = row.y[i] ?? undefined;
  }
}
