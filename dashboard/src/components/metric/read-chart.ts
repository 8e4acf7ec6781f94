/** Collects what a chart shows now: series on show, finer points when zoomed, marks of what happened. */
import type { ChartInput, ChartView } from "@/components/chart/input";
import { details } from "@/data/detail";
import type { Line, Plot } from "@/data/line";
import { pointLoader } from "@/data/loader";
import { outlineLoader } from "@/data/outline-loader";
import { buildPlot, metricsOf, type PlotSeries } from "@/data/plot";
import { rankSeries } from "@/data/rank-series";
import type { Series } from "@/data/series";
import { seriesStore } from "@/data/series-store";
import { inherited, superseded } from "@/data/superseded";
import { plainName } from "@/lib/formula";
import { groupOf } from "@/lib/run-groups";
import type { Range, View } from "@/lib/view-codec";
import { type RunIndex, runIndex, shownRuns, useCatalog } from "@/stores/catalog";
import { usePause } from "@/stores/pause";
import { useView } from "@/stores/view";
import { marksOf } from "./event-marks";

const HOUR = 3_600_000;
const RANGE_MS: Record<Range, number> = {
  "1h": HOUR,
  "6h": 6 * HOUR,
  "24h": 24 * HOUR,
  "7d": 168 * HOUR,
  all: Infinity,
};
/** What a chart asks for when the snapshot brought only an outline; two points, its extremes, stand for each bucket. */
const DETAILS = [512, 1024] as const;
const WHOLE = 2000;
/** The server keeps so many points of a series as they came, and each alone is no more bytes than a band of half as many. */
const RAW_POINTS = 998;
const MIN_BUCKETS = 150;
const MAX_BUCKETS = 1000;
/** A mean and a band per two pixels show what one per pixel does, at half the drawing. */
const BUCKETS_PER_PX = 0.6;
const NEARLY = 0.9;

export interface Only {
  run: string;
  rank: number | null;
}

/** What a chart drew last, for as long as nothing that it is computed from has changed. */
export interface Memo {
  key: string;
  plot: Plot | null;
}

export type Look = ChartView & Pick<View, "ranks" | "attempts" | "range" | "groupBy">;

export interface ReadOptions {
  /** Metrics, and formulas with a mark before them. */
  drawn: readonly string[];
  look: Look;
  width: number;
  /** Shows one run, or one rank of it, whatever is chosen above. */
  only?: Only | undefined;
  memo?: Memo;
  onDetail(): void;
}

export function sinceOf(range: Range): number {
  return range === "all" ? -Infinity : Date.now() - RANGE_MS[range];
}

/** One metric, or formula, as the metrics page looks at it. */
export function readMetric(metric: string, rest: Omit<ReadOptions, "drawn" | "look">): ChartInput {
  return readChart({ ...rest, drawn: [metric], look: { ...useView.getState(), xMetric: "" } });
}

export function readChart(options: ReadOptions): ChartInput {
  const { drawn, look, width, only, onDetail } = options;
  const { runs } = useCatalog.getState();
  const { starts, names } = runIndex(runs);
  const shown = new Set(only ? [only.run] : shownRuns(runs, useView.getState().runs));
  if (!only && look.baseline && names.has(look.baseline)) shown.add(look.baseline);
  outlineLoader.want(shown);
  const maxBuckets = Math.min(MAX_BUCKETS, Math.max(MIN_BUCKETS, width * BUCKETS_PER_PX));
  const detail = DETAILS.find((points) => points >= 2 * maxBuckets * NEARLY) ?? WHOLE;
  const metrics = metricsOf(look.xMetric ? [...drawn, look.xMetric] : drawn);
  const series: PlotSeries[] = [];
  const logged = new Set<string>();
  let pending = false;
  for (const one of metrics.flatMap((metric) => seriesStore.of(metric))) {
    if (!shown.has(one.head.run_id) || (only && only.rank !== null && only.rank !== one.head.rank)) continue;
    logged.add(one.head.run_id);
    if (!pointLoader.want(one, one.totalPoints <= RAW_POINTS ? WHOLE : detail)) {
      pending = true;
      continue;
    }
    const start = starts.get(one.head.run_id) || (one.times.at(0) ?? 0);
    series.push({ head: one.head, start, columns: fine(one, look, start, onDetail) });
  }
  if (look.attempts === "all") {
    for (const metric of metrics) series.push(...older(metric, logged, only, starts, onDetail));
  }
  const told: number[] = [];
  for (const found of metrics.map((metric) => beyondStream(metric, only, starts, onDetail))) {
    pending ||= found === null;
    for (const one of found ?? []) {
      series.push(one);
      logged.add(one.head.run_id);
      told.push(one.columns.times.at(-1) ?? 0);
    }
  }
  for (const metric of metrics) series.push(...before(metric, shown, only, starts, onDetail));
  const labels = labelsOf(only ? "" : look.groupBy, shown);
  const own = [maxBuckets, series.length, ...told, ...shown, ...(labels?.values() ?? [])];
  const plot = remembered(options, metrics, own, () =>
    buildPlot(series, {
      ...look,
      drawn,
      ranks: labels ? "mean" : look.ranks,
      since: sinceOf(look.range),
      labelOf: labels && ((run) => labels.get(run) ?? ""),
      maxBuckets,
    }),
  );
  return {
    plot,
    view: look,
    nameOf: namer(names, drawn.length > 1, only),
    marks: marksOf(shown, look, starts),
    runs: logged,
    pending,
  };
}

function labelsOf(groupBy: string, shown: ReadonlySet<string>): Map<string, string> | null {
  if (!groupBy) return null;
  const runs = useCatalog.getState().runs.filter((run) => shown.has(run.run_id));
  return new Map(runs.map((run) => [run.run_id, groupOf(run, groupBy)]));
}

/**
 * Many redraws bring no new point: an alert, another chart's news, a cursor. The plot is computed once per version of its data, and
 * anew where the clock or an answer on its way decides what is drawn.
 */
function remembered(
  { drawn, look, memo }: ReadOptions,
  metrics: readonly string[],
  own: readonly unknown[],
  make: () => Plot,
): Plot {
  if (!memo || look.range !== "all" || look.zoom !== null || look.attempts === "all") return make();
  const { x, xMetric, logX, logY, smoothing, smoothingKind, ranks, groupBy, baseline } = look;
  const options = [x, xMetric, logX, logY, smoothing, smoothingKind, ranks, groupBy, baseline];
  const key = JSON.stringify([own, drawn, metrics.map((metric) => seriesStore.version(metric)), options]);
  if (memo.plot === null || memo.key !== key) {
    memo.plot = make();
    memo.key = key;
  }
  return memo.plot;
}

function namer(names: RunIndex["names"], several: boolean, only: Only | undefined): (line: Line) => string {
  return (line) => {
    const owner = line.group ? `${line.group.label} · ${line.group.count} runs` : (names.get(line.run) ?? line.run);
    const metric = plainName(line.metric);
    const named = !several ? owner : only ? metric : `${owner} · ${metric}`;
    const ranked = line.rank === null ? named : `${named} · rank ${line.rank}`;
    if (line.origin) return `${ranked} · of ${names.get(line.origin) ?? line.origin}, before the fork`;
    return line.attempt === null ? ranked : `${ranked} · attempt ${line.attempt}, superseded`;
  };
}

/** What earlier attempts of these runs measured and later ones did again. */
function older(
  metric: string,
  logged: ReadonlySet<string>,
  only: Only | undefined,
  starts: ReadonlyMap<string, number>,
  onDetail: () => void,
): PlotSeries[] {
  return useCatalog
    .getState()
    .runs.filter((run) => logged.has(run.run_id) && run.superseded_points > 0)
    .flatMap((run) =>
      superseded
        .get(run.run_id, metric, run.superseded_points, onDetail)
        .filter((one) => !only || only.rank === null || only.rank === one.rank)
        .map((one) => ({
          head: { ...one, run_id: run.run_id },
          start: starts.get(run.run_id) ?? 0,
          columns: one,
          attempt: one.attempt,
        })),
    );
}

/** The one rank on show of a metric that has more of them than the stream carries; null while it is on its way. */
function beyondStream(
  metric: string,
  only: Only | undefined,
  starts: ReadonlyMap<string, number>,
  onDetail: () => void,
): PlotSeries[] | null {
  if (!only || only.rank === null) return [];
  const { run: id, rank } = only;
  const run = useCatalog.getState().runs.find((one) => one.run_id === id);
  const isStreamed = seriesStore.of(metric).some(({ head }) => head.run_id === id && head.rank === rank);
  if (isStreamed || run?.wide_metrics[metric] === undefined) return [];
  let first = false;
  const found = rankSeries.get(id, metric, rank, () => {
    if (first || !usePause.getState().paused) onDetail();
  });
  first = found === null;
  const start = starts.get(id) ?? 0;
  return found?.map((one) => ({ head: { ...one, run_id: id }, start, columns: one })) ?? null;
}

/** What the runs measured that these were forked from; those that are on show themselves need no second line. */
function before(
  metric: string,
  shown: ReadonlySet<string>,
  only: Only | undefined,
  starts: ReadonlyMap<string, number>,
  onDetail: () => void,
): PlotSeries[] {
  return useCatalog.getState().runs.flatMap((run) => {
    if (!shown.has(run.run_id) || !run.forked_from) return [];
    return inherited
      .get(run.run_id, metric, run.forked_from.step, onDetail)
      .filter((one) => one.origin !== null && !shown.has(one.origin))
      .filter((one) => !only || only.rank === null || only.rank === one.rank)
      .map((one) => ({
        head: { ...one, run_id: run.run_id },
        start: starts.get(one.origin ?? "") ?? one.times[0] ?? 0,
        columns: one,
        origin: one.origin,
      }));
  });
}

function fine(series: Series, look: Look, start: number, onDetail: () => void) {
  if (look.zoom === null || look.xMetric || series.exact) return series;
  const { run_id: run, metric, rank, device, host } = series.head;
  const found = details.get({ run, metric, x: look.x, zoom: look.zoom, start }, onDetail);
  const match = found?.find((one) => one.rank === rank && one.device === device && one.host === host);
  return match && match.steps.length > 0 ? match : series;
}
