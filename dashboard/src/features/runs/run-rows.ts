/** What the run table shows per run: its times and the values of the chosen columns. */
import type { RunInfo, RunTable } from "@/api/wire";
import { formatValue } from "@/lib/format";
import { displayName, isRunning } from "@/lib/runs";

export interface RunRow {
  run: RunInfo;
  name: string;
  start: number | null;
  seconds: number | null;
  /** By the column's name. */
  values: Record<string, unknown>;
}

export interface KnownRuns {
  runs: readonly RunInfo[];
  /** False while there are more. */
  whole: boolean;
}

/** In the server's order; without its answer, the newest runs that are not archived. A row stands in its own place: while
 * not all runs are here, the list ends before the first that is not. */
export function toRows({ runs, whole }: KnownRuns, table: RunTable | undefined, now: number): RunRow[] {
  if (table === undefined) return runs.filter((run) => !run.archived).map((run) => toRow(run, now, {}));
  const known = new Map(runs.map((run) => [run.run_id, run]));
  const awaited = whole ? -1 : table.ids.findIndex((id) => !known.has(id));
  const ids = awaited < 0 ? table.ids : table.ids.slice(0, awaited);
  return ids.flatMap((id, place) => {
    const run = known.get(id);
    if (run === undefined) return []; // deleted since
    const values = Object.fromEntries(Object.entries(table.columns).map(([name, column]) => [name, column[place]]));
    return [toRow(run, now, values)];
  });
}

function toRow(run: RunInfo, now: number, values: Record<string, unknown>): RunRow {
  return { run, name: displayName(run), ...timesOf(run, now), values };
}

export function timesOf(run: RunInfo, now: number): { start: number | null; seconds: number | null } {
  const start = run.start_time_ms;
  const end = isRunning(run) ? now : run.last_event_time_ms;
  return { start, seconds: start === null || end === null ? null : (end - start) / 1000 };
}

/** Last and best of the first loss that there is. */
export function defaultColumns(names: readonly string[]): string[] {
  const metrics = names.filter((name) => name.endsWith(".min")).map((name) => name.slice(0, -".min".length));
  const wanted =
    ["loss", "train/loss"].find((name) => metrics.includes(name)) ?? metrics.find((name) => /loss/.test(name));
  return wanted === undefined ? [] : [`${wanted}.last`, `${wanted}.min`];
}

/** How far a number is from the baseline's, with its sign; empty where one of them is no number. */
export function differenceText(value: unknown, from: unknown): string {
  if (typeof value !== "number" || typeof from !== "number") return "";
  const off = value - from;
  if (off === 0) return "±0";
  return `${off > 0 ? "+" : ""}${formatValue(off)}`;
}

/** The next order after a click on a column: names rise first, everything else falls first. */
export function nextSort(sort: string, key: string): string {
  if (sort === key) return `-${key}`;
  if (sort === `-${key}`) return key;
  return key === "name" || key === "group" ? key : `-${key}`;
}
