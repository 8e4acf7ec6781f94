/** Which runs exist, and which of them are shown. */
import { create } from "zustand";
import type { RunInfo } from "@/api/wire";
import { runStyles } from "@/lib/colors";
import { useView } from "./view";

interface Catalog {
  /** Newest first. */
  runs: RunInfo[];
  /** False until the first snapshot: "no runs" and "not known yet" are different sentences. */
  loaded: boolean;
  /** The server sent some series with fewer points to stay inside its byte budget. */
  reduced: boolean;
  /** Runs whose series are not here yet: too many for one snapshot. */
  omitted: ReadonlySet<string>;
}

/** More lines than this in every chart tell nothing, and each is asked for. The page says when there are more. */
export const DEFAULT_SHOWN = 50;

export const NO_RUNS_KNOWN: Catalog = { runs: [], loaded: false, reduced: false, omitted: new Set() };

export { displayName } from "@/lib/runs";

export const useCatalog = create<Catalog>(() => NO_RUNS_KNOWN);

export function setRuns(runs: readonly RunInfo[]): void {
  const sorted = [...runs].sort((a, b) => startOf(b) - startOf(a) || a.run_id.localeCompare(b.run_id));
  runStyles.seat(sorted.map((run) => run.run_id));
  useCatalog.setState({ runs: sorted, loaded: true });
}

function startOf(run: RunInfo): number {
  return run.start_time_ms ?? 0;
}

/** All runs that are not archived, as far as a page can draw them: live ones first, then the newest. */
export function defaultRuns(runs: readonly RunInfo[]): string[] {
  const ordered = runs.filter((run) => !run.archived).sort((a, b) => Number(b.is_active) - Number(a.is_active));
  return ordered.slice(0, DEFAULT_SHOWN).map((run) => run.run_id);
}

export function shownRuns(runs: readonly RunInfo[], wanted: readonly string[] | null): string[] {
  if (wanted === null) return defaultRuns(runs);
  const known = new Set(runs.map((run) => run.run_id));
  return wanted.filter((id) => known.has(id));
}

export function toggleRun(id: string): void {
  const shown = shownRuns(useCatalog.getState().runs, useView.getState().runs);
  const runs = shown.includes(id) ? shown.filter((other) => other !== id) : [...shown, id];
  useView.getState().set({ runs });
}
