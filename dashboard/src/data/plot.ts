/** From the store's columns to what a chart draws. Pure: same series and options, same plot. */
import {
  alignMean,
  type Buckets,
  bucketize,
  bucketWidth,
  type Columns,
  type Numbers,
  type Row,
  unionIndex,
} from "@/lib/buckets";
import { type Formula, isFormula, namesIn, parseFormula, plainName, problemOf } from "@/lib/formula";
import { type SmoothingKind, smooth } from "@/lib/smoothing";
import type { RankMode, XKind } from "@/lib/view-codec";
import { formulaLines, overMetric } from "./derive";
import { groupLines } from "./grouping";
import { isAside, type Line, type Plot } from "./line";

export interface PlotSeries {
  head: { run_id: string; metric: string; rank: number; device: number; host: string; unit: string };
  columns: Columns;
  /** Unix ms at which the run began, for the relative axis. */
  start: number;
  /** The earlier attempt that measured these points, which a later one did again; null for what counts. */
  attempt?: number | null;
  /** The run that measured these points before this one was forked from it; null for its own. */
  origin?: string | null;
}

export interface PlotOptions {
  x: XKind;
  /** What is drawn: metrics, and formulas with a mark before them. */
  drawn: readonly string[];
  /** The metric that takes the place of the step; empty: none does. */
  xMetric: string;
  ranks: RankMode;
  smoothing: number;
  smoothingKind: SmoothingKind;
  logX: boolean;
  logY: boolean;
  /** Draws one line per group of runs; null: each run has its own. */
  labelOf: ((run: string) => string) | null;
  /** A run that keeps its own line among groups. */
  baseline: string;
  /** Unix ms; older points are outside the timeline. */
  since: number;
  zoom: readonly [number, number] | null;
  maxBuckets: number;
}

export function buildPlot(series: readonly PlotSeries[], options: PlotOptions): Plot {
  const measured = measure(series, options.xMetric ? { ...options, x: "step", zoom: null } : options);
  const { x, lines } = options.xMetric
    ? overMetric(drawnLines(measured.lines, options), options.xMetric, options.zoom, options.maxBuckets)
    : { x: measured.x, lines: drawnLines(measured.lines, options) };
  const from = options.logX ? x.findIndex((value) => value > 0) : 0;
  const cut =
    from === 0 ? { x, lines } : { x: from < 0 ? [] : x.slice(from), lines: lines.map((one) => drop(one, from)) };
  const shown = options.labelOf ? regroup(cut.x, cut.lines, options.labelOf, options.baseline) : cut.lines;
  for (const line of shown) finish(line, cut.x, options);
  return { x: cut.x, lines: shown, width: measured.width, unit: measured.unit };
}

/** Every metric of every run on shared x values. */
function measure(series: readonly PlotSeries[], options: PlotOptions): Plot {
  const groups = group(series, options.ranks);
  const width = chooseWidth(series, options);
  const bucketed = groups.map(({ members }) => members.map((one) => cut(one, options, width)));
  const shared = unionIndex(bucketed.flat());
  const lines = groups.map(({ key, run, metric, rank, attempt, origin }, i): Line => {
    const row = alignMean(shared, bucketed[i] ?? []);
    return { key, run, metric, rank, attempt, origin, group: null, smooth: row.y, ...row };
  });
  const unit = series.find((one) => one.head.unit)?.head.unit ?? "";
  return { x: shared.map((index) => index * width), lines, width, unit };
}

/** What was asked for, formulas computed; with the metric of the x axis, which overMetric takes away. */
function drawnLines(lines: readonly Line[], { drawn, xMetric }: PlotOptions): Line[] {
  const computed = drawn.filter(isFormula).flatMap((name) => formulaLines(lines, name, readable(name)));
  const plain = lines.filter((line) => drawn.includes(line.metric) || line.metric === xMetric);
  return computed.length > 0 ? [...plain, ...computed] : plain;
}

const NOTHING: Formula = { kind: "number", value: Number.NaN };

function readable(name: string): Formula {
  const text = plainName(name);
  return problemOf(text) === null ? parseFormula(text) : NOTHING;
}

/** The metrics whose points a chart of these needs. A formula that cannot be read needs none. */
export function metricsOf(drawn: readonly string[]): string[] {
  return [...new Set(drawn.flatMap((name) => (isFormula(name) ? namesIn(readable(name)) : [name])))];
}

function regroup(
  x: readonly number[],
  lines: readonly Line[],
  labelOf: (run: string) => string,
  baseline: string,
): Line[] {
  return [...groupLines(x, lines, labelOf), ...lines.filter((line) => line.run === baseline && !isAside(line))];
}

function drop(line: Line, from: number): Line {
  const keep = <T>(row: readonly T[]): T[] => (from < 0 ? [] : row.slice(from));
  return {
    ...line,
    y: keep(line.y),
    smooth: keep(line.smooth),
    min: keep(line.min),
    max: keep(line.max),
    bad: keep(line.bad),
  };
}

function finish(line: Line, x: readonly number[], { logY, smoothing, smoothingKind }: PlotOptions): void {
  if (logY) line.hidden = hideNonPositive(line);
  line.smooth = smoothing > 0 ? smooth(x, line.y, smoothing, logY, smoothingKind) : line.y;
}

function axisOf(series: PlotSeries, x: XKind): { values: Numbers; offset: number } {
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
    const at = (values.at(i) ?? 0) - offset;
    if (at < from || at > to || (series.columns.times.at(i) ?? 0) < options.since) continue;
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
  const spans: [number, number][] = [];
  for (const one of series) {
    const { low, high, inside } = extent(one, options);
    if (inside === 0) continue;
    longest = Math.max(longest, high - low);
    most = Math.max(most, inside);
    spans.push([low, high]);
  }
  // Runs of different days share no bucket: what all of them cover fills the x array.
  const total = covered(spans);
  const wanted = Math.max(
    bucketWidth(longest, options.maxBuckets),
    bucketWidth(total, options.maxBuckets * MAX_RUNS_APART),
  );
  // Ranks log at slightly different moments: on a time axis a bucket must be as wide as their common beat to average them.
  if (series.length > 1 && options.x !== "step") return Math.max(wanted, bucketWidth(longest, Math.max(most, 1)));
  return most <= options.maxBuckets ? 1 : wanted;
}

/** How much of the axis lies in at least one of these spans. */
function covered(spans: [number, number][]): number {
  let total = 0;
  let end = -Infinity;
  for (const [low, high] of spans.sort(([a], [b]) => a - b)) {
    total += Math.max(0, high - Math.max(low, end));
    end = Math.max(end, high);
  }
  return total;
}

const MAX_RUNS_APART = 6;

interface Group {
  key: string;
  run: string;
  metric: string;
  rank: number | null;
  attempt: number | null;
  origin: string | null;
  members: PlotSeries[];
}

/** Runs as they came; the ranks of a run in their order, whichever was heard of first. */
function group(series: readonly PlotSeries[], ranks: RankMode) {
  const places = new Map([...new Set(series.map((one) => one.head.run_id))].map((run, place) => [run, place]));
  const place = (run: string) => places.get(run) ?? 0;
  const groups = new Map<string, Group>();
  for (const one of series) {
    const { run_id: run, metric, rank, device, host } = one.head;
    const attempt = one.attempt ?? null;
    const own = ranks === "mean" ? `${run}\n${metric}` : `${run}\n${metric}\n${host}\n${rank}\n${device}`;
    const origin = one.origin ?? null;
    const aside = [attempt === null ? "" : `\nattempt ${attempt}`, origin === null ? "" : `\nfrom ${origin}`];
    const key = own + aside.join("");
    const found = groups.get(key);
    if (found) found.members.push(one);
    else groups.set(key, { key, run, metric, rank: ranks === "mean" ? null : rank, attempt, origin, members: [one] });
  }
  return [...groups.values()].sort((a, b) => place(a.run) - place(b.run) || (a.rank ?? 0) - (b.rank ?? 0));
}

function hideNonPositive(row: Row): Map<number, number> {
  const hidden = new Map<number, number>();
  for (let i = 0; i < row.y.length; i += 1) {
    const value = row.y[i];
    if (typeof value === "number" && value <= 0) {
      hidden.set(i, value);
      row.y[i] = null;
    }
    if ((row.min[i] ?? 1) <= 0) row.min[i] = row.y[i] ?? undefined;
    if ((row.max[i] ?? 1) <= 0) row.max[i] = row.y[i] ?? undefined;
  }
  return hidden;
}
