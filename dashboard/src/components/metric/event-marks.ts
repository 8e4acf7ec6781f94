/** Alerts, checkpoints and attempts of the runs on show, at their places on a chart's x axis. */
import type { XAxis } from "@/components/chart/axis";
import type { Mark } from "@/components/chart/marks";
import { useAlerts } from "@/stores/alerts";
import { runIndex, useCatalog } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";

/** None on the axis of a metric: what happened has a step and a time. */
export function marksOf(
  shown: ReadonlySet<string>,
  { x, xMetric }: XAxis,
  starts: ReadonlyMap<string, number>,
): Mark[] {
  if (xMetric) return [];
  const marks: Mark[] = [];
  const place = (run: string, step: number | null, time: number | null): number | null => {
    if (x === "step") return step;
    return time === null ? null : x === "wall" ? time : time - (starts.get(run) ?? 0);
  };
  for (const alert of useAlerts.getState().alerts) {
    if (alert.run_id === null || !shown.has(alert.run_id) || alert.severity === "info") continue;
    const at = place(alert.run_id, alert.step, alert.timestamp_ms);
    if (at !== null) marks.push({ x: at, kind: alert.severity === "critical" ? "critical" : "alert" });
  }
  for (const run of useCatalog.getState().runs) {
    if (!shown.has(run.run_id)) continue;
    for (const began of run.attempts ?? []) {
      const at = place(run.run_id, began.step, began.at_ms);
      if (at !== null) marks.push({ x: at, kind: "attempt" });
    }
  }
  const { ofTask } = runIndex(useCatalog.getState().runs);
  for (const checkpoint of useCluster.getState().checkpoints) {
    if (checkpoint.status !== "completed") continue;
    for (const run of ofTask.get(checkpoint.task_id ?? "") ?? []) {
      const at = shown.has(run) ? place(run, checkpoint.step, checkpoint.created_at_ms) : null;
      if (at !== null) marks.push({ x: at, kind: "checkpoint" });
    }
  }
  return marks;
}
