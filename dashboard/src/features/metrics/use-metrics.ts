import { useMemo } from "react";
import { useMetricNames } from "@/hooks/metric-names";
import { useShownRuns } from "@/hooks/runs";
import { MARK } from "@/lib/formula";
import { matcher } from "@/lib/matcher";
import { sortByInterest, tabOf } from "@/lib/metric-tabs";
import type { MetricTab } from "@/lib/view-codec";
import { usePrefs } from "@/stores/prefs";
import { useView } from "@/stores/view";

export interface MetricEntry {
  name: string;
}

export function useTabs(): { byTab: Record<MetricTab, MetricEntry[]>; total: number } {
  const names = useMetricNames(useShownRuns());
  const rules = usePrefs((prefs) => prefs.rules);
  const search = useView((view) => view.search);
  const formulas = useView((view) => view.formulas);
  // Ten thousand names are put in order once, not with every letter that is typed.
  const sorted = useMemo(
    () => sortByInterest(names).map((name) => ({ name, tab: tabOf(name, rules) })),
    [names, rules],
  );
  return useMemo(() => {
    const byTab: Record<MetricTab, MetricEntry[]> = {
      training: [],
      model: [],
      system: [],
      checkpoints: [],
      progress: [],
    };
    const match = matcher(search);
    byTab.training.push(...formulas.map((formula) => ({ name: MARK + formula })));
    for (const one of sorted) if (match.test(one.name)) byTab[one.tab].push(one);
    return { byTab, total: sorted.length };
  }, [sorted, search, formulas]);
}
