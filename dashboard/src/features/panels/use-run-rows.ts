/** Runs on show with their values in some columns, and how they look. */
import { useMemo } from "react";
import type { RunInfo } from "@/api/wire";
import { type RunValues, useRunValues } from "@/hooks/run-values";
import { useShownRuns } from "@/hooks/runs";
import { groupStyles, runStyles } from "@/lib/colors";
import { groupOf } from "@/lib/run-groups";
import { displayName, useCatalog } from "@/stores/catalog";
import { useTheme } from "@/stores/theme";
import { useView } from "@/stores/view";

export interface RunRow {
  run: RunInfo;
  name: string;
  /** Empty while runs are not grouped. */
  group: string;
  color: string;
  isBaseline: boolean;
  values: Readonly<Record<string, unknown>>;
}

export interface RunRows extends Pick<RunValues, "loaded" | "error" | "names"> {
  rows: RunRow[];
}

/** Newest first; the baseline is among them, chosen or not. */
export function useRunRows(columns: readonly string[]): RunRows {
  const runs = useCatalog((state) => state.runs);
  const shown = useShownRuns();
  const groupBy = useView((view) => view.groupBy);
  const baseline = useView((view) => view.baseline);
  const theme = useTheme((state) => state.theme);
  const wanted = useMemo(() => new Set(baseline ? [...shown, baseline] : shown), [shown, baseline]);
  const ids = useMemo(() => [...wanted], [wanted]);
  const { values, loaded, error, names } = useRunValues(ids, columns);
  const rows = useMemo(
    () =>
      runs
        .filter((run) => wanted.has(run.run_id))
        .map((run): RunRow => {
          const group = groupBy ? groupOf(run, groupBy) : "";
          const style = group ? groupStyles.of(group) : runStyles.of(run.run_id);
          const isBaseline = run.run_id === baseline;
          return {
            run,
            name: displayName(run),
            group,
            color: style[theme],
            isBaseline,
            values: values.get(run.run_id) ?? {},
          };
        }),
    [runs, wanted, groupBy, baseline, values, theme],
  );
  return { rows, loaded, error, names };
}
