/** What the run table shows per run: its times, and last and best loss from the series at hand. */
import type { RunInfo } from "@/api/wire";
import { meanOfNewest } from "@/components/metric/latest";
import { pointLoader } from "@/data/loader";
import type { Series } from "@/data/series";
import { seriesStore } from "@/data/series-store";
import { isRunning } from "@/lib/runs";
import { displayName } from "@/stores/catalog";

/** Extremes survive decimation, so few points tell the best one. */
const BEST_POINTS = 16;

export interface RunRow {
  run: RunInfo;
  name: string;
  start: number | null;
  seconds: number | null;
  lossName: string | null;
  /** The mean over ranks, as charts draw it. */
  last: number | null;
  /** The lowest that any rank has logged. */
  best: number | null;
}

export function toRow(run: RunInfo, now: number): RunRow {
  const start = run.start_time_ms;
  const end = isRunning(run) ? now : run.last_event_time_ms;
  const ranks = lossSeries(run.run_id);
  const here = ranks.map((series) => pointLoader.want(series, BEST_POINTS)).every(Boolean);
  let best: number | null = null;
  for (const { min } of here ? ranks : []) {
    for (const value of min) if (value !== null && (best === null || value < best)) best = value;
  }
  return {
    run,
    name: displayName(run),
    start,
    seconds: start === null || end === null ? null : (end - start) / 1000,
    lossName: ranks[0]?.head.metric ?? null,
    last: meanOfNewest(ranks),
    best,
  };
}

/** Of every rank that logs it. */
function lossSeries(run: string): Series[] {
  for (const name of ["loss", "train/loss", ...seriesStore.names().filter((one) => one.startsWith("loss"))]) {
    const found = seriesStore.of(name).filter((one) => one.head.run_id === run);
    if (found.length > 0) return found;
  }
  return [];
}

export type SortKey = "name" | "status" | "start" | "seconds" | "step" | "points" | "last" | "best";

const KEYS: Record<SortKey, (row: RunRow) => string | number> = {
  name: (row) => row.name,
  status: (row) => row.run.state,
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
