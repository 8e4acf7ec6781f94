/** Ticks and ranges: pure functions of the numbers on show. */
import type { Plot } from "@/data/line";
import { formatClock, formatCompact, formatDateTime, formatDuration, formatValue } from "@/lib/format";
import type { XKind } from "@/lib/view-codec";

/** What the x axis shows: step, time, or the values of a metric. */
export interface XAxis {
  x: XKind;
  xMetric: string;
}

export function formatX({ x: kind, xMetric }: XAxis, value: number): string {
  if (xMetric) return `${xMetric} ${formatValue(value)}`;
  if (kind === "step") return `step ${Math.round(value).toLocaleString("en-US")}`;
  return kind === "rel" ? formatDuration(value / 1000) : formatDateTime(value);
}

export function xTicks({ x: kind, xMetric }: XAxis, splits: readonly number[]): string[] {
  if (xMetric) return yTicks(splits);
  if (kind === "step") return splits.map((value) => formatCompact(value));
  if (kind === "rel") return splits.map((value) => formatDuration(value / 1000).replace(/ 00[sm]$/, ""));
  const span = (splits.at(-1) ?? 0) - (splits[0] ?? 0);
  return splits.map((value) =>
    span > 86_400_000 ? formatDateTime(value).slice(5, 16) : formatClock(value).slice(0, 5),
  );
}

/** Labels as short as they can be while neighbours still tell their distance. */
export function yTicks(splits: readonly (number | null)[]): string[] {
  const known = splits.filter((value): value is number => value !== null);
  const step = Math.abs((known[1] ?? 0) - (known[0] ?? 0));
  const most = Math.max(...known.map(Math.abs));
  const digits = step > 0 ? Math.ceil(Math.log10(most / step)) + 1 : 0;
  const text = digits <= 3 ? formatCompact : (value: number) => withDigits(value, most, Math.min(digits, 12));
  return splits.map((value) => (value === null ? "" : text(value)));
}

function withDigits(value: number, most: number, digits: number): string {
  if (most >= 1000) return formatValue(value);
  const text = most < 1e-3 ? value.toExponential(digits - 1) : value.toPrecision(digits);
  return text.replace(/\.?0+(?=e|$)/, "").replace("-", "−");
}

/** Ticks of a log axis: 1, 2 and 5 of each decade, fewer when there are many decades. uPlot's own loop for ever on a range that does not begin at a power of ten. */
export function logSplits(min: number, max: number): number[] {
  if (!(min > 0) || !(max > min)) return [];
  const [first, last] = [Math.floor(Math.log10(min)), Math.ceil(Math.log10(max))];
  const decades = last - first;
  const parts = decades > 4 ? [1] : decades > 1 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
  const skip = Math.max(1, Math.ceil(decades / 8));
  const out: number[] = [];
  for (let exponent = first; exponent <= last; exponent += skip) {
    for (const part of parts) {
      const value = Number(`${part}e${exponent}`);
      if (value >= min && value <= max) out.push(value);
    }
  }
  return out;
}

export function xRange(plot: Plot, zoom: readonly [number, number] | null, log = false): [number, number] {
  const first = plot.x[0] ?? (log ? 1 : 0);
  const last = plot.x.at(-1) ?? (log ? 10 : 1);
  // A log axis has no place for what is not above zero, whatever an address asks for.
  if (zoom && (!log || zoom[1] > 0))
    return log && zoom[0] <= 0 ? [Math.min(first, zoom[1] / 10), zoom[1]] : [zoom[0], zoom[1]];
  if (log && first === last) return [first / 2, last * 2];
  return first === last ? [first - 1, last + 1] : [first, last];
}

/** Extremes of line and band inside [from, to], padded. Spikes are cut off only for who asks: `clip`. */
export function yRange(
  plot: Plot,
  [from, to]: readonly [number, number],
  log: boolean,
  clip = false,
): [number, number] {
  const [low, high] = clip ? middleOf(plot, from, to) : extremesOf(plot, from, to);
  if (low > high) return log ? [0.1, 1] : [0, 1];
  if (log) return [low / 1.15, high * 1.15];
  // Means of one constant differ in their last bit; blown up to the whole axis that would look like a jump.
  if (high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high))) return padFlat(low);
  const pad = (high - low) * 0.07;
  // A metric that never goes below zero keeps zero as its floor when it comes near it.
  const floor = low >= 0 && low - pad < 0 ? 0 : low - pad;
  return [floor, high + pad];
}

function padFlat(value: number): [number, number] {
  const pad = value === 0 ? 1 : Math.abs(value) * 0.1;
  return [value - pad, value + pad];
}

function extremesOf(plot: Plot, from: number, to: number): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < plot.x.length; i += 1) {
    const x = plot.x[i] ?? 0;
    if (x < from || x > to) continue;
    for (const line of plot.lines) {
      const y = line.y[i];
      if (y === null || y === undefined) continue;
      low = Math.min(low, y, line.min[i] ?? y);
      high = Math.max(high, y, line.max[i] ?? y);
    }
  }
  return [low, high];
}

/** Without the lowest and the highest fiftieth of all points. */
const CLIPPED = 0.02;

function middleOf(plot: Plot, from: number, to: number): [number, number] {
  const values: number[] = [];
  for (let i = 0; i < plot.x.length; i += 1) {
    const x = plot.x[i] ?? 0;
    if (x < from || x > to) continue;
    for (const line of plot.lines) if (typeof line.y[i] === "number") values.push(line.y[i] as number);
  }
  const sorted = Float64Array.from(values).sort();
  const cut = Math.floor(sorted.length * CLIPPED);
  return [sorted[cut] ?? Infinity, sorted[sorted.length - 1 - cut] ?? -Infinity];
}
