import { useSyncExternalStore } from "react";
import { seriesStore } from "@/data/series-store";

/** All metric names of the stream, sorted; changes only when a new name appears. */
export function useMetricNames(): readonly string[] {
  useSyncExternalStore(seriesStore.subscribeCatalog, seriesStore.catalogVersion);
  return seriesStore.names();
}
