import { useMemo } from "react";
import { MetricCard } from "@/components/metric/metric-card";
import { Empty, Skeleton } from "@/components/ui/empty";
import { FleetMap } from "@/components/ui/fleet-map";
import { NoRuns } from "@/components/ui/no-runs";
import { Page } from "@/components/ui/page";
import { Panel } from "@/components/ui/panel";
import { WorkerGrid } from "@/components/ui/worker-grid";
import { useMetricNames } from "@/hooks/metric-names";
import { useNow } from "@/hooks/now";
import { useLeadRun } from "@/hooks/runs";
import { fleetText } from "@/lib/fleet";
import { formatDuration } from "@/lib/format";
import { headlines } from "@/lib/metric-tabs";
import { countText } from "@/lib/workers";
import { useCatalog } from "@/stores/catalog";
import { upFor, useCluster } from "@/stores/cluster";
import { useLink } from "@/stores/link";
import { RunHeader } from "./run-header";
import { LastCheckpoint, NewestEvents } from "./side-panels";
import { SystemTiles } from "./system-tiles";

const CHARTS = 4;

/** What the run above has logged; the other runs on show are drawn beside it where they have logged it too. */
function Charts({ lead }: { lead: string }) {
  const names = useMetricNames(useMemo(() => [lead], [lead]));
  return (
    <div className="grid grid-cols-2 gap-3 max-lg:grid-cols-1">
      {headlines(names, CHARTS).map((name) => (
        <MetricCard key={name} metric={name} height={160} />
      ))}
    </div>
  );
}

function Workers() {
  const workers = useCluster((state) => state.workers);
  const loaded = useCluster((state) => state.loaded);
  const fleet = useCluster((state) => state.fleet);
  const note = fleet.folded ? fleetText(fleet.groups) : workers.length > 0 ? countText(workers) : undefined;
  return (
    <Panel title="Workers" note={note}>
      {fleet.folded ? (
        <FleetMap groups={fleet.groups} />
      ) : workers.length > 0 ? (
        <WorkerGrid workers={workers} />
      ) : loaded ? (
        <Empty title="No worker is in the cluster" className="py-6">
          Start a task, or run <code className="font-mono">strata run --workers 4 train.py</code>.
        </Empty>
      ) : (
        <Skeleton rows={2} />
      )}
    </Panel>
  );
}

export default function OverviewPage() {
  const run = useLeadRun();
  const { runs, loaded } = useCatalog();
  const offline = useLink((link) => link.state !== "live" && link.lastEventAt === null);
  const coordinator = useCluster((state) => state.coordinator);
  const now = useNow(1000);
  const note = coordinator?.connected
    ? `${coordinator.address} · up ${formatDuration(upFor(coordinator, now))} · ${coordinator.storage_backend ?? "storage unknown"} · version ${coordinator.version}`
    : undefined;
  return (
    <Page title="Overview" note={note}>
      {run ? <RunHeader run={run} /> : loaded || offline ? runs.length === 0 && <NoRuns /> : <Skeleton rows={3} />}
      <SystemTiles />
      <div className="grid grid-cols-[minmax(0,2fr)_minmax(0,1fr)] gap-3 max-lg:grid-cols-1">
        <div className="flex min-w-0 flex-col gap-3">
          <Workers />
          {run && <Charts lead={run.run_id} />}
        </div>
        <div className="flex min-w-0 flex-col gap-3">
          <LastCheckpoint />
          <NewestEvents />
        </div>
      </div>
    </Page>
  );
}
