import { useState } from "react";
import { Button } from "@/components/ui/button";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Facts } from "@/components/ui/facts";
import { FleetMap } from "@/components/ui/fleet-map";
import { LogLines } from "@/components/ui/log-lines";
import { Page } from "@/components/ui/page";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { ProgressBar } from "@/components/ui/progress";
import { StatusLabel } from "@/components/ui/status";
import { Stragglers } from "@/components/ui/stragglers";
import { VerdictText } from "@/components/ui/verdict";
import { WorkerGrid } from "@/components/ui/worker-grid";
import { useNow } from "@/hooks/now";
import { useResource } from "@/hooks/resource";
import { isGood } from "@/lib/checkpoints";
import { formatDateTime, formatDuration, formatPercent, UNKNOWN } from "@/lib/format";
import { newestFirst } from "@/lib/logs";
import { useCatalog } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import { openFork } from "@/stores/overlay";
import { CoursePanel } from "./course-panel";
import { ResumeDialog } from "./resume-dialog";
import { StopDialog } from "./stop-dialog";
import {
  budgetFacts,
  canResume,
  canStop,
  elapsed,
  excludedFacts,
  forkFact,
  gpuFacts,
  hangFact,
  sizeFacts,
  spareFacts,
} from "./task-facts";

const LINK = "text-xs font-medium text-accent hover:underline";

export function TaskPage({ id }: { id: string }) {
  const now = useNow(1000);
  const { tasks, workers, fleet, loaded } = useCluster();
  const run = useCatalog((state) => state.runs.find((one) => one.task_id === id || one.run_id === id));
  const logs = useResource(["task-logs", id], (it, signal) => it.logs({ task_id: id, limit: 60 }, signal), {
    everyMs: 2000,
  });
  const [asking, setAsking] = useState<"stop" | "resume" | null>(null);
  const saved = useCluster((state) => state.checkpoints.some((one) => one.task_id === id && isGood(one)));
  const task = tasks.find((one) => one.id === id);
  const back = (
    <PageLink page="tasks" className={LINK}>
      All tasks
    </PageLink>
  );
  if (!task) {
    return (
      <Page title={id} actions={back}>
        {loaded ? <Empty title="No such task">The coordinator does not know {id}.</Empty> : <Skeleton rows={8} />}
      </Page>
    );
  }
  const names = new Set(task.worker_ids);
  const mine = workers.filter((worker) => names.has(worker.id));
  const groups = fleet.folded ? fleet.groups.filter((group) => group.task_id === id) : [];
  return (
    <Page
      title={task.name}
      note={task.id}
      actions={
        <>
          {back}
          {run && (
            <PageLink page="metrics" view={{ runs: [run.run_id] }} className={LINK}>
              Its metrics
            </PageLink>
          )}
          {canStop(task) && (
            <Button needs="POST /tasks/{task_id}/stop" onClick={() => setAsking("stop")}>
              Stop
            </Button>
          )}
          {canResume(task) && (
            <Button needs="POST /tasks/{task_id}/resume" onClick={() => setAsking("resume")}>
              Resume
            </Button>
          )}
          {saved && (
            <Button
              needs="POST /tasks/{task_id}/fork"
              onClick={() => openFork({ task_id: id, step: null, checkpoint_id: null })}
            >
              Fork
            </Button>
          )}
        </>
      }
    >
      <div className="grid grid-cols-2 gap-3 max-md:grid-cols-1">
        <Panel title="State">
          <Facts
            rows={[
              ["Status", <StatusLabel key="s" status={task.status} />],
              ...(task.reason ? ([["Reason", task.reason]] as const) : []),
              [
                "Progress",
                <span key="p" className="flex items-center gap-2">
                  <ProgressBar value={task.progress} label="Progress" className="w-40" />
                  <span className="font-mono">{formatPercent(task.progress, 1)}</span>
                </span>,
              ],
              ["Attempt", task.attempt ?? UNKNOWN],
              ...sizeFacts(task),
              ...budgetFacts(task),
              ["Ranks that hang", hangFact(task)],
              ...gpuFacts(task),
              ...spareFacts(task),
              ...excludedFacts(task),
              ...(task.fork
                ? ([
                    [
                      "Forked from",
                      <span key="f">
                        <PageLink page="tasks" id={task.fork.task_id} className="text-accent hover:underline">
                          {task.fork.task_id}
                        </PageLink>{" "}
                        {forkFact(task.fork)}
                      </span>,
                    ],
                  ] as const)
                : []),
              ["Type", task.type],
              [
                "Dataset",
                task.dataset_id ? (
                  <PageLink
                    key="d"
                    page="data"
                    view={{ dataset: task.dataset_id }}
                    className="text-accent hover:underline"
                  >
                    {task.dataset_id}
                  </PageLink>
                ) : (
                  UNKNOWN
                ),
              ],
              ["Started", formatDateTime(task.started_at_ms)],
              ["Time", formatDuration(elapsed(task, now))],
            ]}
          />
        </Panel>
        <Panel title="Config">
          {Object.keys(task.config ?? {}).length === 0 ? (
            <p className="text-xs text-muted">Nothing was configured.</p>
          ) : (
            <Facts
              rows={Object.entries(task.config).map(
                ([key, value]) =>
                  [
                    key,
                    <span key={key} className="font-mono">
                      {JSON.stringify(value)}
                    </span>,
                  ] as const,
              )}
            />
          )}
        </Panel>
      </div>
      {((task.attempt ?? 0) > 1 || task.status !== "completed") && (
        <Panel title="Why">
          <VerdictText task={task.id} everyMs={5000} />
        </Panel>
      )}
      <CoursePanel task={task} now={now} />
      <Panel title="Workers" note={`${task.worker_ids.length || (task.worker_count ?? 0)} in this task`}>
        {groups.length > 0 ? (
          <>
            <FleetMap groups={groups} />
            <Stragglers groups={groups} />
          </>
        ) : mine.length > 0 ? (
          <WorkerGrid workers={mine} />
        ) : (
          <p className="text-xs text-muted">None of its workers is in the cluster now.</p>
        )}
      </Panel>
      <Panel
        title="Newest log lines"
        flush
        actions={
          <PageLink page="logs" view={{ task: id, worker: "", level: "", logSearch: "", at: "" }} className={LINK}>
            All
          </PageLink>
        }
      >
        <div className="max-h-96 overflow-y-auto py-2">
          {logs.data?.length ? (
            <LogLines lines={newestFirst(logs.data)} />
          ) : (
            <Empty title={logs.isPending ? "Loading" : "No line yet"} className="py-4" />
          )}
        </div>
      </Panel>
      {asking === "stop" && <StopDialog task={task} onClose={() => setAsking(null)} />}
      {asking === "resume" && <ResumeDialog task={task} onClose={() => setAsking(null)} />}
    </Page>
  );
}
