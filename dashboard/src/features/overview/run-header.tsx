import { useCallback } from "react";
import type { RunInfo, Task } from "@/api/wire";
import { Sparkline } from "@/components/chart/sparkline";
import { latestOf } from "@/components/metric/latest";
import { Empty } from "@/components/ui/empty";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { ProgressBar } from "@/components/ui/progress";
import { RunSwatch } from "@/components/ui/run-swatch";
import { Stat } from "@/components/ui/stat";
import { StatusLabel } from "@/components/ui/status";
import { pointLoader } from "@/data/loader";
import { seriesStore } from "@/data/series-store";
import { useNow } from "@/hooks/now";
import { cx } from "@/lib/cx";
import { formatAge, formatCount, formatDuration, formatPercent } from "@/lib/format";
import { isRunning } from "@/lib/runs";
import { displayName } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import { GoodputLine } from "./goodput-line";

const SPARK_POINTS = 240;

function firstMetric(run: string, prefixes: readonly string[]): string | null {
  for (const prefix of prefixes) {
    const name = seriesStore
      .names()
      .find((one) => one.startsWith(prefix) && seriesStore.of(one).some((s) => s.head.run_id === run));
    if (name) return name;
  }
  return null;
}

/** Step and time of the newest point; the run list itself is only refreshed every half minute. */
function newestPoint(run: string, metric: string | null): { step: number; time: number } | null {
  const series = metric ? seriesStore.of(metric).find((one) => one.head.run_id === run) : undefined;
  const time = series?.times.at(-1);
  return series && time !== undefined ? { step: series.steps.at(-1) ?? 0, time } : null;
}

function remaining(task: Task | undefined, run: RunInfo, now: number): number | null {
  const start = task?.started_at_ms ?? run.start_time_ms;
  const progress = task?.progress;
  if (!isRunning(run) || start === null || !progress || progress < 0.5) return null;
  return ((now - start) / 1000) * ((100 - progress) / progress);
}

function spent(task: Task | undefined, run: RunInfo, now: number): string {
  const start = run.start_time_ms ?? now;
  if (isRunning(run)) return `running for ${formatDuration((now - start) / 1000)}`;
  const end = task?.completed_at_ms ?? run.last_event_time_ms ?? now;
  return `ran for ${formatDuration((end - start) / 1000)}`;
}

export function RunHeader({ run }: { run: RunInfo | null }) {
  const now = useNow(1000);
  const task = useCluster((state) => state.tasks.find((one) => one.id === run?.task_id));
  const id = run?.run_id ?? "";
  const lossName = firstMetric(id, ["loss", "train/loss", "train"]);
  const rateName = firstMetric(id, ["throughput/tokens", "throughput/", "tokens_per_sec"]);
  const read = useCallback(() => {
    const series = lossName ? seriesStore.of(lossName).find((one) => one.head.run_id === id) : undefined;
    return series && pointLoader.want(series, 2 * SPARK_POINTS) ? series.values.slice(-SPARK_POINTS) : [];
  }, [id, lossName]);
  const subscribe = useCallback((listener: () => void) => seriesStore.subscribe(lossName ?? "", listener), [lossName]);
  if (!run) return <Empty title="No run chosen">Choose a run in the top bar.</Empty>;

  const mine = [id];
  const loss = lossName ? latestOf(lossName, mine) : null;
  const rate = rateName ? latestOf(rateName, mine) : null;
  const newest = newestPoint(id, lossName ?? rateName);
  const reason = task?.reason ?? run.reason;
  return (
    <Panel
      title={
        <span className="flex items-center gap-2">
          <RunSwatch run={id} />
          <PageLink page="runs" id={id} className="hover:underline">
            {displayName(run)}
          </PageLink>
        </span>
      }
      note={<StatusLabel status={task?.status ?? run.state} />}
      actions={
        reason ? (
          <span className={cx("text-xs", run.state === "finished" ? "text-muted" : "text-warn")}>{reason}</span>
        ) : undefined
      }
    >
      <div className="grid grid-cols-6 gap-x-4 gap-y-3 max-lg:grid-cols-3 max-sm:grid-cols-2">
        <Stat
          label="Step"
          value={formatCount(newest?.step ?? run.latest_step)}
          note={`last point ${formatAge(newest?.time ?? run.last_event_time_ms, now)}`}
        />
        <Stat
          label="Progress"
          value={formatPercent(task?.progress, 1)}
          note={<ProgressBar value={task?.progress} label="Progress" className="mt-1.5" />}
        />
        <Stat label="Time left" value={formatDuration(remaining(task, run, now))} note={spent(task, run, now)} />
        <Stat
          label={rateName ?? "Throughput"}
          value={rate?.text ?? "–"}
          unit={rate?.unit ?? ""}
          note={task?.attempt ? `attempt ${task.attempt}` : undefined}
        />
        <Stat
          label={lossName ?? "Loss"}
          value={<span className={loss?.bad ? "text-bad" : ""}>{loss?.text ?? "–"}</span>}
          note={loss && loss.nanCount > 0 ? `${loss.nanCount} NaN so far` : "newest value"}
        />
        <div className="min-w-0 self-center">
          <Sparkline
            label={`Recent ${lossName ?? "loss"}`}
            read={read}
            subscribe={subscribe}
            height={44}
            fromZero={false}
          />
        </div>
      </div>
      {task && <GoodputLine task={task.id} />}
    </Panel>
  );
}
