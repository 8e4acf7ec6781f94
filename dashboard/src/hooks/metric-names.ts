import { useEffect, useMemo, useSyncExternalStore } from "react";
import { outlineLoader } from "@/data/outline-loader";
import { seriesStore } from "@/data/series-store";

/** The metric names that these runs have logged, sorted; changes only when the runs or the names do. */
export function useMetricNames(runs: readonly string[]): readonly string[] {
  const version = useSyncExternalStore(seriesStore.subscribeCatalog, seriesStore.catalogVersion);
  useEffect(() => outlineLoader.want(runs), [runs]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the store is read anew when its version changes.
  return useMemo(() => seriesStore.namesOf(runs), [runs, version]);
}
