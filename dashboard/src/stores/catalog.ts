/** Which runs exist, and which of them are shown. */
import { create } from "zustand";
import type { RunInfo } from "@/api/wire";
import { runStyles } from "@/lib/colors";
import { groupBy } from "@/lib/group-by";
import { displayName } from "@/lib/runs";
import { useView } from "./view";

interface Catalog {
  /** Newest first. */
  runs: RunInfo[];
  /** False until the first snapshot: "no runs" and "not known yet" are different sentences. */
  loaded: boolean;
  /** False while these are the newest of more: of a run that is not here nobody can say that it is none. */
  whole: boolean;
  /** The server sent some series with fewer points to stay inside its byte budget. */
  reduced: boolean;
  /** Runs whose series are here, where one snapshot could not have those of all; null: it had. */
  outlined: ReadonlySet<string> | null;
}

/** More lines than this in every chart tell nothing, and each is asked for. The page says when there are more. */
export const DEFAULT_SHOWN = 50;

export const NO_RUNS_KNOWN: Catalog = { runs: [], loaded: false, whole: false, reduced: false, outlined: null };

export { displayName };

export const useCatalog = create<Catalog>(() => NO_RUNS_KNOWN);

export function setRuns(runs: readonly RunInfo[]): void {
  // Runs that were imported together began at the same moment, and ten thousand names are slow for a collator.
  const sorted = [...runs].sort((a, b) => startOf(b) - startOf(a) || (a.run_id < b.run_id ? -1 : 1));
  runStyles.seat(sorted.map((run) => run.run_id));
  useCatalog.setState({ runs: sorted, loaded: true });
}

/** News of some runs; the others are as they were. */
export function mergeRuns(changed: readonly RunInfo[], deleted: readonly string[]): void {
  if (changed.length === 0 && deleted.length === 0) return;
  const known = new Map(useCatalog.getState().runs.map((run) => [run.run_id, run]));
  for (const run of changed) known.set(run.run_id, run);
  for (const id of deleted) known.delete(id);
  setRuns([...known.values()]);
}

/** Runs that were asked for while not all are here. What the stream has told of one is newer than the answer. */
export function addRuns(found: readonly RunInfo[]): void {
  const { runs, whole } = useCatalog.getState();
  if (whole) return;
  const known = runIndex(runs).names;
  mergeRuns(
    found.filter((run) => !known.has(run.run_id)),
    [],
  );
}

/** Whether the series of a run must be asked for. */
export function isOmitted({ outlined }: Pick<Catalog, "outlined">, run: string): boolean {
  return outlined !== null && !outlined.has(run);
}

function startOf(run: RunInfo): number {
  return run.start_time_ms ?? 0;
}

/** All runs that are not archived, as far as a page can draw them: live ones first, then the newest. */
export function defaultRuns(runs: readonly RunInfo[]): string[] {
  const ordered = runs.filter((run) => !run.archived).sort((a, b) => Number(b.is_active) - Number(a.is_active));
  return ordered.slice(0, DEFAULT_SHOWN).map((run) => run.run_id);
}

let shown: { runs: readonly RunInfo[]; wanted: readonly string[] | null; ids: readonly string[] } | null = null;

/** Asked by every chart at every draw, of ten thousand runs: computed when the runs or the choice change. */
export function shownRuns(runs: readonly RunInfo[], wanted: readonly string[] | null): readonly string[] {
  if (shown?.runs !== runs || shown.wanted !== wanted) {
    const known = runIndex(runs).names;
    shown = { runs, wanted, ids: wanted === null ? defaultRuns(runs) : wanted.filter((id) => known.has(id)) };
  }
  return shown.ids;
}

export interface RunIndex {
  /** Unix ms; 0 for a run that nobody knows the start of. */
  starts: ReadonlyMap<string, number>;
  names: ReadonlyMap<string, string>;
  /** Several runs may be of one task. */
  ofTask: ReadonlyMap<string, readonly string[]>;
}

let indexed: { runs: readonly RunInfo[]; index: RunIndex } | null = null;

/** The same list looked up by id and by task, made once per list. */
export function runIndex(runs: readonly RunInfo[]): RunIndex {
  if (indexed?.runs !== runs) {
    const tasks = groupBy(runs, (run) => run.task_id ?? run.run_id);
    const index = {
      starts: new Map(runs.map((run) => [run.run_id, run.start_time_ms ?? 0])),
      names: new Map(runs.map((run) => [run.run_id, displayName(run)])),
      ofTask: new Map([...tasks].map(([task, own]) => [task, own.map((run) => run.run_id)])),
    };
    indexed = { runs, index };
  }
  return indexed.index;
}

export function toggleRun(id: string): void {
  const shown = shownRuns(useCatalog.getState().runs, useView.getState().runs);
  const runs = shown.includes(id) ? shown.filter((other) => other !== id) : [...shown, id];
  useView.getState().set({ runs });
}
