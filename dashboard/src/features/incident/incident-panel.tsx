import type { SeriesQuery } from "@/api/requests";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { LogLines } from "@/components/ui/log-lines";
import { PageLink } from "@/components/ui/page-link";
import { StatusLabel } from "@/components/ui/status";
import { VerdictText } from "@/components/ui/verdict";
import { useNow } from "@/hooks/now";
import { useResource } from "@/hooks/resource";
import { verdictOf } from "@/lib/checkpoints";
import { formatAge, formatBytes, formatCount, formatDateTime } from "@/lib/format";
import { weightOf } from "@/lib/logs";
import { missingText } from "@/lib/workers";
import { displayName, useCatalog } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import { type Incident, openFork, toast, useOverlay } from "@/stores/overlay";
import { barriersNear, goodCheckpoint, heldSeries, locate, rankValues } from "./evidence";
import { RankTable } from "./rank-table";
import { toMarkdown } from "./report";
import { None, Section } from "./section";

const AROUND_S = 30;
const LINES = 200;
/** Either side; metrics that are logged now and then are looked up this far away. */
const STEPS = 25;

/** What to ask the server for: by step where it is known, else by time. */
function around(step: number | null, time: number | null): SeriesQuery {
  if (step !== null) return { from_step: Math.max(0, step - STEPS), to_step: step + STEPS, points: 100 };
  const seconds = (time ?? 0) / 1000;
  return { from_time: seconds - AROUND_S, to_time: seconds + AROUND_S, points: 2000 };
}

export default function IncidentPanel({ incident }: { incident: Incident }) {
  const now = useNow(5000);
  const { workers, barriers, checkpoints, tasks } = useCluster();
  const run = useCatalog((state) => state.runs.find((one) => one.run_id === incident.run_id));
  const { run_id: runId, step, time } = incident;
  const exact = useResource(
    ["incident-series", runId, step, time],
    (it, signal) => it.series(runId ?? "", around(step, time), signal),
    { enabled: runId !== null && (step !== null || time !== null) },
  );
  const held = exact.data?.length ? exact.data : heldSeries(runId);
  const at = locate(incident, held);
  const seconds = at.time === null ? null : at.time / 1000;
  const logs = useResource(
    ["incident-logs", seconds],
    (it, signal) =>
      it.logs({ after: (seconds ?? 0) - AROUND_S, before: (seconds ?? 0) + AROUND_S, limit: LINES }, signal),
    { enabled: seconds !== null },
  );
  const evidence = rankValues(held, incident.metric, at);
  // A task's run has the task's id unless it was named; without a run it happened among the plain workers.
  const task = tasks.find((one) => one.id === (run?.task_id ?? incident.run_id));
  const group = task?.id ?? run?.task_id ?? null;
  const near = barriersNear(barriers, group, at);
  // A step that was only guessed from the time must not hide what was saved since it was logged.
  const checkpoint = goodCheckpoint(checkpoints, group, { step, time: at.time });
  const lines = [...(logs.data ?? [])].sort(
    (a, b) => weightOf(b.level) - weightOf(a.level) || a.timestamp - b.timestamp,
  );
  const mine = workers.filter((worker) => (task ? task.worker_ids.includes(worker.id) : worker.current_task === null));
  const close = () => useOverlay.setState({ incident: null });
  const copy = async () => {
    await navigator.clipboard.writeText(toMarkdown({ incident, at, run, evidence, barriers: near, checkpoint, lines }));
    toast("The report was copied as Markdown.", "ok");
  };
  const place = [
    run && displayName(run),
    at.step === null ? null : `step ${formatCount(at.step)}`,
    at.time === null ? null : formatDateTime(at.time),
  ];

  return (
    <Dialog title="Incident trail" onClose={close} sheet>
      <div data-testid="incident" className="h-[calc(100%-44px)] overflow-y-auto">
        <div className="border-b border-line px-4 py-3">
          <p className="text-sm leading-6 font-medium">{incident.title}</p>
          <p className="mt-0.5 flex flex-wrap items-center gap-x-2 text-xs text-muted">
            {place.filter(Boolean).join(" · ")}
            <span className="-mx-2.5 ml-auto flex">
              {task && checkpoint && (
                <Button
                  needs="POST /tasks/{task_id}/fork"
                  look="quiet"
                  onClick={() => openFork({ task_id: task.id, step: at.step, checkpoint_id: null })}
                >
                  Fork from here
                </Button>
              )}
              <Button look="quiet" onClick={copy}>
                Copy as Markdown
              </Button>
            </span>
          </p>
        </div>
        {task && (
          <Section title="Why">
            <VerdictText task={task.id} at={seconds} />
          </Section>
        )}
        <Section title="Values per rank" note="at the nearest logged step">
          {evidence.length > 0 ? (
            <RankTable evidence={evidence} workers={mine} />
          ) : (
            <None>No metric of a run is tied to this moment.</None>
          )}
        </Section>
        <Section title="Last good checkpoint" note="before this step">
          {checkpoint ? (
            <p className="text-xs leading-5">
              Step {formatCount(checkpoint.step)}
              {at.step !== null &&
                at.step > checkpoint.step &&
                `, ${formatCount(at.step - checkpoint.step)} steps earlier`}{" "}
              · {formatBytes(checkpoint.size)} ·{" "}
              {checkpoint.status === "removed"
                ? `removed since${checkpoint.reason ? `: ${checkpoint.reason}` : ""}`
                : verdictOf(checkpoint)}{" "}
              · {formatAge(checkpoint.created_at_ms, now)}
              <span className="block font-mono break-all text-muted">{checkpoint.path}</span>
            </p>
          ) : (
            <None>None is known before it.</None>
          )}
        </Section>
        <Section title="Barriers" note="within a minute">
          {near.length === 0 && <None>None is on record near it.</None>}
          <ul className="flex flex-col gap-1 text-xs">
            {near.map((barrier) => (
              <li key={barrier.id} className="flex flex-wrap gap-x-2">
                <StatusLabel status={barrier.status} />
                <span className="font-mono">{barrier.name}</span>
                <span className="text-muted">
                  {barrier.arrived} of {barrier.total}
                  {barrier.status === "waiting" && `, waits for ${missingText(barrier, workers, now)}`} {barrier.reason}
                </span>
              </li>
            ))}
          </ul>
        </Section>
        <Section title="Shards" note="as assigned now">
          {mine.length === 0 ? (
            <None>No worker of this run is in the cluster.</None>
          ) : (
            <p className="text-xs leading-5">
              {task?.dataset_id ? (
                <PageLink
                  page="data"
                  view={{ dataset: task.dataset_id }}
                  className="text-accent hover:underline"
                  onClick={close}
                >
                  {task.dataset_id}
                </PageLink>
              ) : (
                "No dataset"
              )}
              : {mine.map((worker) => `rank ${worker.rank ?? "–"} ${formatCount(worker.assigned_shards)}`).join(" · ")}
            </p>
          )}
        </Section>
        <Section title="Log lines" note={`±${AROUND_S} s, worst first`}>
          {seconds === null && <None>The time of this moment is not known.</None>}
          {logs.isPending && seconds !== null && <div className="skeleton h-16" />}
          {logs.data?.length === 0 && <None>Nobody logged anything then, or the lines have expired.</None>}
          <div className="-mx-4">
            <LogLines lines={lines} />
          </div>
        </Section>
      </div>
    </Dialog>
  );
}
