/** Which runs are on show, for pages and the top bar. */
import { useMemo } from "react";
import type { RunInfo } from "@/api/wire";
import { leadOf } from "@/lib/runs";
import { shownRuns, useCatalog } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import { useView } from "@/stores/view";

/** The ids of the runs on show, stable while the answer is the same. */
export function useShownRuns(): string[] {
  const runs = useCatalog((state) => state.runs);
  const wanted = useView((state) => state.runs);
  const key = shownRuns(runs, wanted).join("\n");
  return useMemo(() => (key === "" ? [] : key.split("\n")), [key]);
}

/** What is known of the runs on show, newest first. */
export function useRunsOnShow(): RunInfo[] {
  const runs = useCatalog((state) => state.runs);
  const shown = useShownRuns();
  return useMemo(() => {
    const wanted = new Set(shown);
    return runs.filter((run) => wanted.has(run.run_id));
  }, [runs, shown]);
}

/** The run that single-run pages talk about: of those on show. */
export function useLeadRun(): RunInfo | null {
  const tasks = useCluster((state) => state.tasks);
  return leadOf(useRunsOnShow(), tasks);
}
