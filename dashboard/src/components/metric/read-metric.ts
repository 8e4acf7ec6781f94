/** Collects what one metric's chart shows now: series on show, finer points when zoomed, marks of what happened. */
import type { ChartInput } from "@/components/chart/input";
import type { Mark } from "@/components/chart/marks";
import { details } from "@/data/detail";
import { pointLoader } from "@/data/loader";
import { buildPlot, type Line, type PlotSeries } from "@/data/plot";
import type { Series } from "@/data/series";
import { seriesStore } from "@/data/series-store";
import { superseded } from "@/data/superseded";
import type { Range, View, XKind } from "@/lib/view-codec";
import { useAlerts } from "@/stores/alerts";
import { displayName, shownRuns, useCatalog } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import { useView } from "@/stores/view";

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

export interface ReadOptions {
  metric: string;
  width: number;
  /** Shows one run, or one rank of it, whatever is chosen above. */
  only?: Only | undefined;
  onDetail(): void;
}

export function sinceOf(range: Range): number {
  return range === "all" ? -Infinity : Date.now() - RANGE_MS[range];
}

export function readMetric({ metric, width, only, onDetail }: ReadOptions): ChartInput {
  const view = useView.getState();
  const { runs } = useCatalog.getState();
  const shown = new Set(only ? [only.run] : shownRuns(runs, view.runs));
  const starts = new Map(runs.map((run) => [run.run_id, run.start_time_ms ?? 0]));
  const names = new Map(runs.map((run) => [run.run_id, displayName(run)]));
  const maxBuckets = Math.min(MAX_BUCKETS, Math.max(MIN_BUCKETS, width * BUCKETS_PER_PX));
  const detail = DETAILS.find((points) => points >= 2 * maxBuckets * NEARLY) ?? WHOLE;
  const series: PlotSeries[] = [];
  const logged = new Set<string>();
  let pending = false;
  for (const one of seriesStore.of(metric)) {
    if (!shown.has(one.head.run_id) || (only && only.rank !== null && only.rank !== one.head.rank)) continue;
    logged.add(one.head.run_id);
    if (!pointLoader.want(one, one.totalPoints <= RAW_POINTS ? WHOLE : detail)) {
      pending = true;
      continue;
    }
    const start = starts.get(one.head.run_id) || (one.times[0] ?? 0);
    series.push({ head: one.head, start, columns: fine(one, view, start, onDetail) });
  }
  if (view.attempts === "all") series.push(...older(metric, logged, only, starts, onDetail));
  const plot = buildPlot(series, {
    x: view.x,
    ranks: view.ranks,
    smoothing: view.smoothing,
    logY: view.logY,
    since: sinceOf(view.range),
    zoom: view.zoom,
    maxBuckets,
  });
  const nameOf = (line: Line) => {
    const name = names.get(line.run) ?? line.run;
    const ranked = line.rank === null ? name : `${name} · rank ${line.rank}`;
    return line.attempt === null ? ranked : `${ranked} · attempt ${line.attempt}, superseded`;
  };
  return { plot, view, nameOf, marks: marksOf(shown, view.x, starts), runs: logged, pending };
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

function fine(series: Series, view: View, start: number, onDetail: () => void) {
  if (view.zoom === null || series.exact) return series;
  const { run_id: run, metric, rank, device, host } = series.head;
  const found = details.get({ run, metric, x: view.x, zoom: view.zoom, start }, onDetail);
  const match = found?.find((one) => one.rank === rank && one.device === device && one.host === host);
  return match && match.steps.length > 0 ? match : series;
}

function marksOf(shown: ReadonlySet<string>, x: XKind, starts: ReadonlyMap<string, number>): Mark[] {
  const marks: Mark[] = [];
  const place = (run: string, step: number | null, time: number | null): number | null => {
    if (x === "step") return step;
    return time === null ? null : x === "wall" ? time : time - (starts.get(run) ?? 0);
  };
  for (const alert of useAlerts.getState().alerts) {
    if (alert.run_id === null || !shown.has(alert.run_id) || alert.severity === "info") continue;
    const at = place(alert.run_id, alert.step, alert.timestamp_ms);
    if (at !== null) marks.push({ x: at, kind: alert.severity === "critical" ? "critical" : "alert" });
  }
  for (const run of useCatalog.getState().runs) {
    if (!shown.has(run.run_id)) continue;
    for (const began of run.attempts ?? []) {
      const at = place(run.run_id, began.step, began.at_ms);
      if (at !== null) marks.push({ x: at, kind: "attempt" });
    }
  }
  const runOf = new Map(useCatalog.getState().runs.map((run) => [run.task_id ?? run.run_id, run.run_id]));
  for (const checkpoint of useCluster.getState().checkpoints) {
    const run = runOf.get(checkpoint.task_id ?? "");
    if (run === undefined || !shown.has(run) || checkpoint.status !== "completed") continue;
    const at = place(run, checkpoint.step, checkpoint.created_at_ms);
    if (at !== null) marks.push({ x: at, kind: "checkpoint" });
  }
  return marks;
}
