import { useMemo, useSyncExternalStore } from "react";
import { seriesStore } from "@/data/series-store";
import { byInterest, matcher, tabOf } from "@/lib/metric-tabs";
import type { MetricTab } from "@/lib/view-codec";
import { usePrefs } from "@/stores/prefs";
import { useView } from "@/stores/view";

export interface MetricEntry {
  name: string;
  unit: string;
}

/** All metric names of the stream, sorted; changes only when a new name appears. */
export function useMetricNames(): readonly string[] {
  useSyncExternalStore(seriesStore.subscribeCatalog, seriesStore.catalogVersion);
  return seriesStore.names();
}

export function useTabs(): { byTab: Record<MetricTab, MetricEntry[]>; total: number } {
  const names = useMetricNames();
  const rules = usePrefs((prefs) => prefs.rules);
  const search = useView((view) => view.search);
  return useMemo(() => {
    const byTab: Record<MetricTab, MetricEntry[]> = {
      training: [],
      model: [],
      system: [],
      checkpoints: [],
      progress: [],
    };
    const match = matcher(search);
    for (const name of [...names].sort(byInterest)) {
      if (!match.test(name)) continue;
      byTab[tabOf(name, rules)].push({ name, unit: seriesStore.of(name)[0]?.head.unit ?? "" });
    }
    return { byTab, total: names.length };
  }, [names, rules, search]);
}
