import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { outlineLoader } from "@/data/outline-loader";
import { seriesStore } from "@/data/series-store";

/** The metric names that these runs have logged, sorted; changes only when the runs or the names do. */
export function useMetricNames(runs: readonly string[]): readonly string[] {
  const version = useSyncExternalStore(seriesStore.subscribeCatalog, seriesStore.catalogVersion);
  // biome-ignore lint/correctness/useExhaustiveDependencies: after another snapshot they are wanted once more.
  useEffect(() => outlineLoader.want(runs), [runs, version]);
  const known = useRef<readonly string[]>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the store is read anew when its version changes.
  return useMemo(() => {
    const names = seriesStore.namesOf(runs);
    const same = names.length === known.current.length && names.every((name, place) => name === known.current[place]);
    if (!same) known.current = names;
    return known.current;
  }, [runs, version]);
}
