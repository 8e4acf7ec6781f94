/** What the run table shows per run: its times, and last and best loss from the series at hand. */
import type { RunInfo } from "@/api/wire";
import { pointLoader } from "@/data/loader";
import { seriesStore } from "@/data/series-store";
import { toMs } from "@/lib/format";
import { isRunning } from "@/lib/runs";
import { displayName } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";

/** Extremes survive decimation, so few points tell the best one. */
const BEST_POINTS = 16;

export interface RunRow {
  run: RunInfo;
  name: string;
  start: number | null;
  seconds: number | null;
  lossName: string | null;
  last: number | null;
  best: number | null;
}

export function toRow(run: RunInfo, now: number): RunRow {
  const start = toMs(run.start_time, run.start_time_ms);
  const end = isRunning(run, useCluster.getState().tasks) ? now : toMs(run.last_event_time, run.last_event_time_ms);
  const series = lossSeries(run.run_id);
  let best: number | null = null;
  const here = series !== undefined && pointLoader.want(series, BEST_POINTS);
  for (const value of here ? series.min : []) if (value !== null && (best === null || value < best)) best = value;
  return {
    run,
    name: displayName(run),
    start,
    seconds: start === null || end === null ? null : (end - start) / 1000,
    lossName: series?.head.metric ?? null,
    last: series?.values.at(-1) ?? null,
    best,
  };
}

function lossSeries(run: string) {
  for (const name of ["loss", "train/loss", ...seriesStore.names().filter((one) => one.startsWith("loss"))]) {
    const found = seriesStore.of(name).find((one) => one.head.run_id === run);
    if (found) return found;
  }
  return undefined;
}

export type SortKey = "name" | "status" | "start" | "seconds" | "step" | "points" | "last" | "best";

const KEYS: Record<SortKey, (row: RunRow) => string | number> = {
  name: (row) => row.name,
  status: (row) => (row.run.is_active ? 0 : 1),
  start: (row) => row.start ?? 0,
  seconds: (row) => row.seconds ?? 0,
  step: (row) => row.run.latest_step ?? 0,
  points: (row) => row.run.num_points ?? 0,
  last: (row) => row.last ?? Infinity,
  best: (row) => row.best ?? Infinity,
};

export function isSortKey(key: string): key is SortKey {
  return key in KEYS;
}

export function sortRows(rows: readonly RunRow[], key: SortKey, down: boolean): RunRow[] {
  const of = KEYS[key];
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [of(a), of(b)];
    return sign * (typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y)) : x - y);
  });
}
