/** Ticks and ranges: pure functions of the numbers on show. */
import type { Plot } from "@/data/plot";
import { formatClock, formatCompact, formatDateTime, formatDuration, formatValue } from "@/lib/format";
import type { XKind } from "@/lib/view-codec";

export function formatX(kind: XKind, value: number): string {
  if (kind === "step") return `step ${Math.round(value).toLocaleString("en-US")}`;
  return kind === "rel" ? formatDuration(value / 1000) : formatDateTime(value);
}

export function xTicks(kind: XKind, splits: readonly number[]): string[] {
  if (kind === "step") return splits.map((value) => formatCompact(value));
  if (kind === "rel") return splits.map((value) => formatDuration(value / 1000).replace(/ 00[sm]$/, ""));
  const span = (splits.at(-1) ?? 0) - (splits[0] ?? 0);
  return splits.map((value) =>
    span > 86_400_000 ? formatDateTime(value).slice(5, 16) : formatClock(value).slice(0, 5),
  );
}

/** Labels as short as they can be while no two neighbours read the same. */
export function yTicks(splits: readonly (number | null)[]): string[] {
  const short = splits.map((value) => (value === null ? "" : formatCompact(value)));
  const step = Math.abs((splits[1] ?? 0) - (splits[0] ?? 0));
  const most = Math.max(...splits.map((value) => Math.abs(value ?? 0)));
  // Three digits are not enough to tell neighbours apart, or would round them to uneven distances.
  const tooShort = most >= 1000 && step > 0 && step / most < 0.01;
  return tooShort ? splits.map((value) => (value === null ? "" : formatValue(value))) : short;
}

export function xRange(plot: Plot, zoom: readonly [number, number] | null): [number, number] {
  if (zoom) return [zoom[0], zoom[1]];
  const first = plot.x[0] ?? 0;
  const last = plot.x.at(-1) ?? 1;
  return first === last ? [first - 1, last + 1] : [first, last];
}

/** Extremes of line and band inside [from, to], padded; spikes are never cut off. */
export function yRange(plot: Plot, from: number, to: number, log: boolean): [number, number] {
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
  if (low > high) return log ? [0.1, 1] : [0, 1];
  if (log) return [low / 1.15, high * 1.15];
  if (low === high) return padFlat(low);
  const pad = (high - low) * 0.07;
  // A metric that never goes below zero keeps zero as its floor when it comes near it.
  const floor = low >= 0 && low - pad < 0 ? 0 : low - pad;
  return [floor, high + pad];
}

function padFlat(value: number): [number, number] {
  const pad = value === 0 ? 1 : Math.abs(value) * 0.1;
  return [value - pad, value + pad];
}
