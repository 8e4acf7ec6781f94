import type { Task } from "@/api/wire";
import { describe } from "@/components/ui/confirm";
import { Empty, Skeleton } from "@/components/ui/empty";
import { GoodputBar } from "@/components/ui/goodput-bar";
import { Panel } from "@/components/ui/panel";
import { StatusLabel } from "@/components/ui/status";
import { useResource } from "@/hooks/resource";
import { endedAs, type Lane, lanesOf } from "@/lib/course";
import { formatClock, formatCount, formatDuration, formatPercent } from "@/lib/format";
import { SizeStrip } from "./size-strip";

const ENDED: readonly Task["status"][] = ["completed", "failed", "stopped"];

/** Where the wall time went, and the attempts as lanes with why each ended. */
export function CoursePanel({ task, now }: { task: Task; now: number }) {
  const over = ENDED.includes(task.status);
  const { data, isPending, error } = useResource(["course", task.id], (it, signal) => it.course(task.id, signal), {
    everyMs: over ? 30_000 : 2000,
  });
  const goodput = data?.goodput_percent;
  return (
    <Panel
      title="Where the time went"
      note={goodput === null || goodput === undefined ? undefined : `${formatPercent(goodput, 1)} of it trained`}
    >
      {isPending && <Skeleton rows={3} />}
      {error && (
        <Empty tone="bad" title="It could not be read">
          {describe(error)}
        </Empty>
      )}
      {data && data.attempts.length === 0 && (
        <p className="text-xs text-muted">
          {(task.attempt ?? 0) > 0 ? "Its attempts were not recorded." : "No attempt has begun yet."}
        </p>
      )}
      {data?.shares && (
        <div className="flex flex-col gap-4">
          <GoodputBar shares={data.shares} legend />
          {task.min_workers < task.worker_count && (
            <SizeStrip attempts={data.attempts} most={task.worker_count} now={now} />
          )}
          <ol aria-label="Attempts" className="flex flex-col gap-2.5">
            {lanesOf(data.attempts, now).map((lane) => (
              <LaneRow key={lane.attempt.attempt} lane={lane} />
            ))}
          </ol>
        </div>
      )}
    </Panel>
  );
}

function LaneRow({ lane }: { lane: Lane }) {
  const { attempt } = lane;
  return (
    <li className="text-xs">
      <p className="flex flex-wrap items-baseline gap-x-2">
        <span className="font-medium">Attempt {attempt.attempt}</span>
        <StatusLabel status={endedAs(attempt)} />
        <span className="text-muted">
          {formatClock(attempt.started_at_ms)}, {formatDuration(lane.seconds)}
          {attempt.resume_step !== null && `, from step ${formatCount(attempt.resume_step)}`}
          {attempt.top_step !== null && `, reached step ${formatCount(attempt.top_step)}`}
        </span>
      </p>
      <div aria-hidden="true" className="relative my-1 h-2.5 overflow-hidden rounded bg-sunken">
        <Part from={lane.start} to={lane.working} fill="bg-idle" />
        <Part from={lane.working} to={lane.lost} fill="bg-ok" />
        <Part from={Math.max(lane.lost, lane.working)} to={lane.end} fill="bg-bad" />
      </div>
      <p className="break-words text-muted">
        {attempt.ended_at_ms !== null && attempt.reason}
        {attempt.lost_steps !== null &&
          ` · ${formatCount(attempt.lost_steps)} ${attempt.lost_steps === 1 ? "step" : "steps"}${attempt.lost_s === null ? "" : ` (${formatDuration(attempt.lost_s)})`} done again`}
      </p>
    </li>
  );
}

/** At least a hair wide: a start of two seconds in a day is still a start. */
function Part({ from, to, fill }: { from: number; to: number; fill: string }) {
  if (to <= from) return null;
  return (
    <span className={`absolute inset-y-0 min-w-[2px] ${fill}`} style={{ left: `${from}%`, width: `${to - from}%` }} />
  );
}
