import { useEffect } from "react";
import { Media } from "@/components/media/media";
import { GroupLegend } from "@/components/metric/group-legend";
import { Empty, Skeleton } from "@/components/ui/empty";
import { NoRuns } from "@/components/ui/no-runs";
import { Page } from "@/components/ui/page";
import { Tabs } from "@/components/ui/tabs";
import { useShownRuns } from "@/hooks/runs";
import { matcher } from "@/lib/matcher";
import type { PageTab } from "@/lib/view-codec";
import { isOmitted, useCatalog } from "@/stores/catalog";
import { useView } from "@/stores/view";
import { CheckpointsTab } from "./checkpoints-tab";
import { FullView } from "./full-view";
import { MetricGrid } from "./metric-grid";
import { ProgressTab } from "./progress-tab";
import { RunBadges } from "./run-badges";
import { shortcut } from "./shortcuts";
import { Toolbar } from "./toolbar";
import { type MetricEntry, useTabs } from "./use-metrics";

const LABELS = {
  training: "Training",
  model: "Model",
  system: "System",
  checkpoints: "Checkpoints",
  progress: "Progress",
  media: "Media",
} as const;
const PLAIN: readonly PageTab[] = ["checkpoints", "progress", "media"];

export default function MetricsPage() {
  const { loaded, runs, reduced } = useCatalog();
  const tab = useView((view) => view.tab);
  const focus = useView((view) => view.focus);
  const { byTab } = useTabs();
  const shown = useShownRuns();
  const metrics = tab === "media" ? [] : byTab[tab];
  useEffect(() => {
    addEventListener("keydown", shortcut);
    return () => removeEventListener("keydown", shortcut);
  }, []);

  const tabs = (Object.keys(LABELS) as (keyof typeof LABELS)[]).map((value) => {
    if (value === "media" || value === "checkpoints") return { value, label: LABELS[value] };
    return { value, label: LABELS[value], count: byTab[value].length };
  });
  const note = reduced ? "Many series: some are drawn with fewer points; zoom in for all of them." : undefined;
  if (!loaded) {
    return (
      <Page title="Metrics">
        <Skeleton rows={8} />
      </Page>
    );
  }
  return (
    <Page title="Metrics" note={note}>
      {runs.length === 0 ? (
        <NoRuns />
      ) : (
        <>
          <div className="sticky top-0 z-20 -mx-4 -mt-2 flex flex-col gap-2 bg-bg px-4 py-2 max-md:static max-md:mx-0 max-md:px-0">
            <RunBadges />
            <Tabs
              label="Metric tabs"
              value={tab}
              tabs={tabs}
              onChange={(value) => useView.getState().set({ tab: value })}
            />
          </div>
          {!PLAIN.includes(tab) && <Toolbar />}
          {!PLAIN.includes(tab) && <GroupLegend />}
          <div role="tabpanel" aria-label={LABELS[tab]} className="flex flex-col gap-3">
            <TabBody tab={tab} metrics={metrics} anyRun={shown.length > 0} />
          </div>
          {focus && <FullView metric={focus} metrics={metrics} />}
        </>
      )}
    </Page>
  );
}

function TabBody({ tab, metrics, anyRun }: { tab: PageTab; metrics: MetricEntry[]; anyRun: boolean }) {
  const search = useView((view) => view.search);
  const shown = useShownRuns();
  const catalog = useCatalog();
  if (tab === "checkpoints") return <CheckpointsTab metrics={metrics} />;
  if (tab === "progress") return <ProgressTab metrics={metrics} />;
  if (!anyRun && !catalog.whole) return <Skeleton rows={8} />;
  if (!anyRun) return <Empty title="No run chosen">Choose one or more runs above to draw their metrics.</Empty>;
  if (tab === "media") return <Media runs={shown} />;
  if (metrics.length > 0) return <MetricGrid metrics={metrics} />;
  if (shown.some((run) => isOmitted(catalog, run))) return <Skeleton rows={8} />;
  return search ? (
    <Empty title="No metric matches">
      Nothing in this tab matches “{search}”.{" "}
      {matcher(search).problem !== null && "It is no regular expression, so it was looked for as plain text."}
    </Empty>
  ) : (
    <Empty title={`No ${LABELS[tab].toLowerCase()} metrics yet`}>
      Names are sorted into tabs by their prefix; the table is under Settings.
    </Empty>
  );
}
