/** The newest value of a metric over the runs on show, and one sentence about its chart for a screen reader. */
import type { ChartInput } from "@/components/chart/input";
import { valueAt } from "@/data/line";
import { metricsOf } from "@/data/plot";
import type { Series } from "@/data/series";
import { seriesStore } from "@/data/series-store";
import { formatUnit, formatValue } from "@/lib/format";
import { isFormula } from "@/lib/formula";
import { unitOf } from "@/lib/metric-tabs";
import { useCatalog } from "@/stores/catalog";

export interface Latest {
  /** The run whose value it is: the first of those asked for that has one. */
  run: string | null;
  text: string;
  unit: string;
  bad: boolean;
  /** Over all runs asked for. */
  nanCount: number;
}

/** What a card says beside its chart; of one rank when it shows one. */
export function newestOf(metric: string, input: ChartInput, rank: number | null): Latest {
  if (isFormula(metric)) return lastOf(input, "");
  const streamed = latestOf(metric, byPriority(input.runs), rank);
  return streamed.run === null ? lastOf(input, unitOf(metric, input.plot.unit)) : streamed;
}

/** Of all ranks, or of one. */
export function latestOf(metric: string, runs: readonly string[], rank: number | null = null): Latest {
  const own = seriesStore.of(metric).filter(({ head, length }) => {
    return length > 0 && runs.includes(head.run_id) && (rank === null || head.rank === rank);
  });
  const nanCount = own.reduce((sum, series) => sum + series.nanCount, 0);
  const run = runs.find((id) => own.some((series) => series.head.run_id === id)) ?? null;
  const ranks = own.filter((series) => series.head.run_id === run);
  const [head] = ranks;
  if (!head) return { run, text: "–", unit: "", bad: false, nanCount };
  const unit = unitOf(metric, head.head.unit);
  const value = meanOfNewest(ranks);
  if (value === null) return { run, text: "NaN", unit, bad: true, nanCount };
  return { run, ...formatUnit(value, unit), bad: false, nanCount };
}

/** The last value of the first line of a chart: of what was computed, or is not in the stream. */
function lastOf({ plot }: ChartInput, unit: string): Latest {
  const line = plot.lines.find((one) => one.y.some((y) => y !== undefined));
  const value =
    line &&
    valueAt(
      line,
      line.y.findLastIndex((y) => y !== undefined),
    );
  const nanCount = plot.lines.reduce((sum, one) => sum + one.bad.reduce((all, bad) => all + bad, 0), 0);
  if (!line || value === undefined) return { run: null, text: "–", unit: "", bad: false, nanCount };
  if (value === null) return { run: line.run, text: "NaN", unit, bad: true, nanCount };
  return { run: line.run, ...formatUnit(value, unit), bad: false, nanCount };
}

/** As the line is drawn: the mean over ranks. One rank at NaN makes it NaN: that must not be averaged away. */
export function meanOfNewest(ranks: readonly Series[]): number | null {
  if (ranks.length === 0) return null;
  let sum = 0;
  for (const series of ranks) {
    const value = series.values.at(-1) ?? null;
    if (value === null) return null;
    sum += value;
  }
  return sum / ranks.length;
}

/** Runs in the order in which their values matter: live ones first, then the newest. */
function byPriority(runs: ReadonlySet<string>): string[] {
  const known = useCatalog.getState().runs.filter((run) => runs.has(run.run_id));
  return [...known.filter((run) => run.is_active), ...known.filter((run) => !run.is_active)].map((run) => run.run_id);
}

export function summarize(metric: string, input: ChartInput): string {
  const parts = input.plot.lines.slice(0, 6).map((line) => {
    let [low, high] = [Infinity, -Infinity];
    let last: number | null | undefined;
    for (let i = 0; i < line.y.length; i += 1) {
      const y = valueAt(line, i);
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
  for (const series of metricsOf([metric]).flatMap((one) => seriesStore.of(one))) {
    if (runs.has(series.head.run_id)) time = Math.max(time, series.times.at(-1) ?? -Infinity);
  }
  return time === -Infinity ? null : time;
}
