import { useMemo } from "react";
import { NamePicker, toChoices } from "@/components/ui/name-picker";
import { useRunsOnShow } from "@/hooks/runs";
import { groupColumns } from "@/lib/run-groups";
import { displayName, useCatalog } from "@/stores/catalog";
import { useView } from "@/stores/view";

/** Draws runs that share a label or a config value as one line with a band, on every chart. */
export function GroupPicker() {
  const runs = useRunsOnShow();
  const groupBy = useView((view) => view.groupBy);
  const columns = useMemo(() => groupColumns(runs), [runs]);
  return (
    <NamePicker
      single
      label="Group by"
      nothing="Group runs"
      choices={toChoices(columns)}
      chosen={groupBy ? [groupBy] : []}
      onChange={([column = ""]) => useView.getState().set({ groupBy: column })}
    />
  );
}

/** The run that every chart shows and that the run table compares with. */
export function BaselinePicker() {
  const runs = useCatalog((state) => state.runs);
  const baseline = useView((view) => view.baseline);
  const choices = useMemo(() => runs.map((run) => ({ value: run.run_id, label: displayName(run) })), [runs]);
  return (
    <NamePicker
      single
      label="Baseline"
      nothing="Baseline"
      choices={choices}
      chosen={baseline ? [baseline] : []}
      onChange={([run = ""]) => useView.getState().set({ baseline: run })}
    />
  );
}
