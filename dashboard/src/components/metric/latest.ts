/** The newest value of a metric over the runs on show, and one sentence about its chart for a screen reader. */
import type { ChartInput } from "@/components/chart/input";
import { seriesStore } from "@/data/series-store";
import { formatUnit, formatValue } from "@/lib/format";

export interface Latest {
  text: string;
  unit: string;
  bad: boolean;
  nanCount: number;
}

export function latestOf(metric: string, runs: ReadonlySet<string>): Latest {
  let time = -Infinity;
  let nanCount = 0;
  let newest: number | null = null;
  let unit = "";
  for (const series of seriesStore.of(metric)) {
    if (!runs.has(series.head.run_id)) continue;
    nanCount += series.nanCount;
    const at = series.times.at(-1) ?? -Infinity;
    if (at > time) {
      time = at;
      newest = series.values.at(-1) ?? null;
      unit = series.head.unit;
    }
  }
  if (time === -Infinity) return { text: "–", unit, bad: false, nanCount };
  if (newest === null) return { text: "NaN", unit, bad: true, nanCount };
  return { ...formatUnit(newest, unit), bad: false, nanCount };
}

export function summarize(metric: string, input: ChartInput): string {
  const parts = input.plot.lines.slice(0, 6).map((line) => {
    let [low, high] = [Infinity, -Infinity];
    let last: number | null | undefined;
    for (let i = 0; i < line.y.length; i += 1) {
      const y = line.y[i];
      if (y === undefined) continue;
      last = y;
      low = Math.min(low, line.min[i] ?? Infinity);
      high = Math.max(high, line.max[i] ?? -Infinity);
    }
    return `${input.nameOf(line)}: last ${formatValue(last ?? null)}, from ${formatValue(low)} to ${formatValue(high)}`;
  });
  return parts.length === 0 ? `${metric}: no data` : `Chart of ${metric}. ${parts.join(". ")}.`;
}

/** Newest time (unix ms) of the metric in the given runs, whatever the timeline hides. */
export function newestTime(metric: string, runs: ReadonlySet<string>): number | null {
  let time = -Infinity;
  for (const series of seriesStore.of(metric)) {
    if (runs.has(series.head.run_id)) time = Math.max(time, series.times.at(-1) ?? -Infinity);
  }
  return time === -Infinity ? null : time;
}
