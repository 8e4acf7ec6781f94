import { Page } from "@/components/ui/page";
import { Tabs } from "@/components/ui/tabs";
import type { ClusterTab } from "@/lib/view-codec";
import { useCluster } from "@/stores/cluster";
import { useView } from "@/stores/view";
import { BarriersTab } from "./barriers-tab";
import { HeatmapTab } from "./heatmap-tab";
import { ShardsTab } from "./shards-tab";
import { WorkerPage } from "./worker-page";
import { WorkersTab } from "./workers-tab";

const BODIES: Record<ClusterTab, () => React.ReactNode> = {
  workers: WorkersTab,
  shards: ShardsTab,
  barriers: BarriersTab,
  heatmap: HeatmapTab,
};

export default function ClusterPage({ id }: { id: string | null }) {
  const tab = useView((view) => view.clusterTab);
  const workers = useCluster((state) => Math.max(state.workers.length, state.fleet.total));
  const waiting = useCluster((state) => state.barriers.filter((one) => one.status === "waiting").length);
  if (id !== null) return <WorkerPage id={id} />;
  const Body = BODIES[tab];
  const tabs = [
    { value: "workers", label: "Workers", count: workers },
    { value: "shards", label: "Shards" },
    { value: "barriers", label: "Barriers", ...(waiting > 0 && { count: waiting }) },
    { value: "heatmap", label: "Rank heatmap" },
  ] as const;
  return (
    <Page title="Cluster">
      <Tabs
        label="Cluster views"
        value={tab}
        tabs={tabs}
        onChange={(value) => useView.getState().set({ clusterTab: value })}
      />
      <div role="tabpanel" aria-label={tab} className="flex flex-col gap-3">
        <Body />
      </div>
    </Page>
  );
}
