import { useSyncExternalStore } from "react";
import { Empty } from "@/components/ui/empty";
import { Panel } from "@/components/ui/panel";
import { ProgressBar } from "@/components/ui/progress";
import { RunSwatch } from "@/components/ui/run-swatch";
import { seriesStore } from "@/data/series-store";
import { useNow } from "@/hooks/now";
import { useRunsOnShow } from "@/hooks/runs";
import { formatCompact, formatCount, formatDuration, formatPercent } from "@/lib/format";
import { isRunning } from "@/lib/runs";
import { displayName } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import type { MetricEntry } from "./use-metrics";

function last(run: string, metric: string): number | null {
  return (
    seriesStore
      .of(metric)
      .find((one) => one.head.run_id === run)
      ?.values.at(-1) ?? null
  );
}

/** How full a milestone's bar is: percents are themselves, times and counts are measured against the farthest run. */
function share(metric: string, value: number, all: readonly number[]): number {
  if (/percent|progress\//.test(metric)) return value <= 1 && !metric.includes("percent") ? value * 100 : value;
  return (100 * value) / Math.max(...all, 1e-12);
}

function show(metric: string, value: number): string {
  if (metric.startsWith("time_to_")) return formatDuration(value);
  return /percent|progress\//.test(metric) ? formatPercent(share(metric, value, []), 1) : formatCompact(value);
}

export function ProgressTab({ metrics }: { metrics: readonly MetricEntry[] }) {
  useSyncExternalStore(seriesStore.subscribeCatalog, seriesStore.catalogVersion);
  const now = useNow(2000);
  const runs = useRunsOnShow();
  const tasks = useCluster((state) => state.tasks);
  if (runs.length === 0) return <Empty title="No run chosen">Choose one above to see how far it is.</Empty>;
  return (
    <div className="grid grid-cols-[repeat(auto-fill,minmax(min(100%,420px),1fr))] gap-3">
      {runs.map((run) => {
        const task = tasks.find((one) => one.id === run.task_id);
        const running = isRunning(run);
        const end = running ? now : (run.last_event_time_ms ?? now);
        const spent = (end - (run.start_time_ms ?? end)) / 1000;
        const done = task?.progress ?? null;
        const left = running && done !== null && done > 0.5 ? (spent * (100 - done)) / done : null;
        const milestones = metrics.flatMap(({ name }) => {
          const value = last(run.run_id, name);
          return value === null ? [] : [{ name, value }];
        });
        return (
          <Panel
            key={run.run_id}
            title={
              <span className="flex items-center gap-2">
                <RunSwatch run={run.run_id} /> {displayName(run)}
              </span>
            }
            note={`step ${formatCount(run.latest_step)} · ${formatDuration(spent)}${left === null ? "" : ` · ${formatDuration(left)} left`}`}
          >
            <ul className="flex flex-col gap-3">
              {task && <Milestone name="task" text={formatPercent(done, 1)} value={done} />}
              {milestones.map(({ name, value }) => {
                const all = runs.flatMap((other) => last(other.run_id, name) ?? []);
                return <Milestone key={name} name={name} text={show(name, value)} value={share(name, value, all)} />;
              })}
            </ul>
            {milestones.length === 0 && (
              <p className="mt-2 text-xs text-muted">No milestone*, time_to_*, progress/* or tokens/* metric yet.</p>
            )}
          </Panel>
        );
      })}
    </div>
  );
}

function Milestone({ name, text, value }: { name: string; text: string; value: number | null }) {
  return (
    <li className="flex flex-col gap-1">
      <span className="flex justify-between gap-3 text-xs">
        <span className="truncate text-muted">{name}</span>
        <span className="font-mono">{text}</span>
      </span>
      <ProgressBar value={value} label={`${name}: ${text}`} />
    </li>
  );
}
