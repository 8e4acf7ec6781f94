import { useMemo } from "react";
import type { Worker } from "@/api/wire";
import { MetricCard } from "@/components/metric/metric-card";
import { Empty, Skeleton } from "@/components/ui/empty";
import { LogLines } from "@/components/ui/log-lines";
import { Page } from "@/components/ui/page";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { seriesStore } from "@/data/series-store";
import { useMetricNames } from "@/hooks/metric-names";
import { useNow } from "@/hooks/now";
import { useResource } from "@/hooks/resource";
import { newestFirst } from "@/lib/logs";
import { useCatalog } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import { WorkerResources, WorkerState } from "./worker-facts";

const CHARTS = 6;

function Metrics({ worker }: { worker: Worker }) {
  const run = useCatalog((state) =>
    state.runs.find((one) => one.task_id === worker.current_task || one.run_id === worker.current_task),
  );
  const id = run?.run_id;
  const names = useMetricNames(useMemo(() => (id === undefined ? [] : [id]), [id]));
  if (!run || worker.rank === null) return null;
  const { rank } = worker;
  const own = names.filter((name) => {
    if (seriesStore.count(name, run.run_id) < 2) return false;
    if (run.wide_metrics[name] !== undefined) return true;
    return seriesStore.of(name).some((one) => one.head.run_id === run.run_id && one.head.rank === rank);
  });
  return (
    <div className="grid grid-cols-[repeat(auto-fill,minmax(min(100%,320px),1fr))] gap-3">
      {own.slice(0, CHARTS).map((name) => (
        <MetricCard key={name} metric={name} height={130} only={{ run: run.run_id, rank }} />
      ))}
    </div>
  );
}

export function WorkerPage({ id }: { id: string }) {
  const now = useNow(1000);
  const listed = useCluster((state) => state.workers.find((one) => one.id === id));
  const folded = useCluster((state) => state.fleet.folded);
  const asked = useResource(["worker", id], (it, signal) => it.fleetWorkers({ worker_id: id, limit: 1 }, signal), {
    everyMs: 1000,
    enabled: folded,
  });
  const worker = listed ?? asked.data?.workers[0];
  const loaded = useCluster((state) => state.loaded) && !(folded && asked.isPending);
  const logs = useResource(["worker-logs", id], (it, signal) => it.logs({ worker_id: id, limit: 40 }, signal), {
    everyMs: 2000,
  });
  const back = (
    <PageLink page="cluster" className="text-xs font-medium text-accent hover:underline">
      All workers
    </PageLink>
  );
  if (!worker) {
    return (
      <Page title={id} actions={back}>
        {loaded ? (
          <Empty title="No such worker">It may have left; its logs and metrics are still under Logs and Metrics.</Empty>
        ) : (
          <Skeleton rows={8} />
        )}
      </Page>
    );
  }
  return (
    <Page
      title={id}
      note={worker.rank === null ? undefined : `rank ${worker.rank} on ${worker.host ?? worker.ip}`}
      actions={back}
    >
      <div className="grid grid-cols-2 gap-3 max-md:grid-cols-1">
        <Panel title="State">
          <WorkerState worker={worker} now={now} />
        </Panel>
        <Panel title="Resources" note="as of its last heartbeat">
          <WorkerResources worker={worker} />
        </Panel>
      </div>
      <Metrics worker={worker} />
      <Panel
        title="Newest log lines"
        flush
        actions={
          <PageLink
            page="logs"
            view={{ worker: id, task: "", level: "", logSearch: "", at: "" }}
            className="text-xs font-medium text-accent hover:underline"
          >
            All
          </PageLink>
        }
      >
        <div className="max-h-80 overflow-y-auto py-2">
          {logs.data?.length ? (
            <LogLines lines={newestFirst(logs.data)} showWorker={false} />
          ) : (
            <Empty title={logs.isPending ? "Loading" : "No line from this worker"} className="py-4" />
          )}
        </div>
      </Panel>
    </Page>
  );
}
