/** Columns of the run table for chosen runs: config values, summaries, and last, lowest or highest of metrics. */
import { keepPreviousData } from "@tanstack/react-query";
import { useMemo } from "react";
import { useResource } from "./resource";

const EVERY_MS = 3000;
/** A longer filter is not read by the server: then all runs are asked for. */
const LONGEST = 1900;
const MOST = 10_000;

export interface RunValues {
  /** By run, then by column. A run that the server does not know is not in here. */
  values: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  /** Everything that could be asked for. */
  names: readonly string[];
  loaded: boolean;
  error: Error | null;
}

export function useRunValues(runs: readonly string[], columns: readonly string[], enabled = true): RunValues {
  const filter = filterFor(runs);
  const column = [...new Set(columns.filter((name) => name !== ""))];
  const query = { filter, sort: "", descending: true, column, limit: MOST };
  const { data, error } = useResource(
    ["run-values", JSON.stringify(query)],
    (requests, signal) => requests.runTable(query, signal),
    { everyMs: EVERY_MS, enabled, placeholder: keepPreviousData },
  );
  return useMemo(() => {
    const values = new Map<string, Record<string, unknown>>();
    data?.ids.forEach((id, place) => {
      values.set(id, Object.fromEntries(Object.entries(data.columns).map(([name, cells]) => [name, cells[place]])));
    });
    return { values, names: data?.names ?? [], loaded: data !== undefined, error };
  }, [data, error]);
}

/** Archived runs are found only by who names them so. */
const EVERY_ONE = "archived:yes or archived:no";

export function filterFor(runs: readonly string[]): string {
  const wanted = runs.map((run) => `id = "${run.replace(/(["\\])/g, "\\$1")}"`).join(" or ");
  const filter = `(${EVERY_ONE}) and (${wanted || 'id = ""'})`;
  return filter.length <= LONGEST ? filter : EVERY_ONE;
}
