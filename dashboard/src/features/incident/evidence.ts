/** What was true at one step or moment of a run, gathered from what the page already holds. */
import type { Barrier, Checkpoint } from "@/api/wire";
import { seriesStore } from "@/data/series-store";
import type { Numbers } from "@/lib/buckets";
import { isGood } from "@/lib/checkpoints";
import type { Incident } from "@/stores/overlay";

export interface RankValue {
  rank: number;
  value: number | null;
  step: number;
}

export interface MetricEvidence {
  metric: string;
  unit: string;
  ranks: RankValue[];
  /** Of the known values; null with fewer than two. */
  median: number | null;
}

const MAX_METRICS = 8;
const NEAR_MS = 60_000;

/** Index of the last point at or before the step (or time); restarts make steps go back, so the newest one wins. */
function indexNear(steps: Numbers, times: Numbers, at: Pick<Incident, "step" | "time">): number {
  let best = -1;
  let distance = Infinity;
  for (let i = 0; i < steps.length; i += 1) {
    const off =
      at.step !== null ? Math.abs((steps.at(i) ?? 0) - at.step) : Math.abs((times.at(i) ?? 0) - (at.time ?? 0));
    if (off <= distance) {
      distance = off;
      best = i;
    }
  }
  return best;
}

/** Step and time of an incident that knows only one of them, from the series that counts its steps best. */
export function locate(
  incident: Pick<Incident, "metric" | "step" | "time">,
  series: readonly Evidence[],
): { step: number | null; time: number | null } {
  const { metric, step, time } = incident;
  if ((step !== null && time !== null) || (step === null && time === null)) return { step, time };
  const [best] = series
    .filter((one) => one.steps.length > 0)
    .sort((a, b) => weigh(b.metric, 1, metric) - weigh(a.metric, 1, metric));
  if (best === undefined) return { step, time };
  const index = indexNear(best.steps, best.times, incident);
  return { step: step ?? best.steps.at(index) ?? null, time: time ?? best.times.at(index) ?? null };
}

/** A series as the store or the server gives it. */
export interface Evidence {
  metric: string;
  rank: number;
  unit: string;
  steps: Numbers;
  times: Numbers;
  values: Numbers<number | null>;
}

/** What the page holds of a run: enough for a first answer, but its points may stand for several steps. */
export function heldSeries(run: string | null): Evidence[] {
  const out: Evidence[] = [];
  for (const series of seriesStore.seen()) {
    const { head, held } = series;
    if (head.run_id !== run || !held) continue;
    const { steps, times, values } = series;
    out.push({ metric: head.metric, rank: head.rank, unit: head.unit, steps, times, values });
  }
  return out;
}

/** The clicked metric first, then step time, loss and gradients, then what every rank logs. */
export function rankValues(
  series: readonly Evidence[],
  clicked: string | null,
  at: { step: number | null; time: number | null },
): MetricEvidence[] {
  if (at.step === null && at.time === null) return [];
  const byMetric = new Map<string, Evidence[]>();
  for (const one of series) byMetric.set(one.metric, [...(byMetric.get(one.metric) ?? []), one]);
  return [...byMetric]
    .map(([metric, ranks]) => ({ metric, ranks, weight: weigh(metric, ranks.length, clicked) }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight || a.metric.localeCompare(b.metric))
    .slice(0, MAX_METRICS)
    .map(({ metric, ranks }) => {
      const values = ranks.flatMap((one) => valueAt(one, at)).sort((a, b) => a.rank - b.rank);
      return { metric, unit: ranks[0]?.unit ?? "", ranks: values, median: medianOf(values) };
    });
}

function valueAt(series: Evidence, at: Pick<Incident, "step" | "time">): RankValue[] {
  const index = indexNear(series.steps, series.times, at);
  return index < 0
    ? []
    : [{ rank: series.rank, value: series.values.at(index) ?? null, step: series.steps.at(index) ?? 0 }];
}

function weigh(metric: string, ranks: number, clicked: string | null): number {
  if (metric === clicked) return 10;
  if (metric.startsWith("step_time")) return 8;
  if (metric === "loss" || metric.startsWith("grad")) return 6;
  return ranks > 1 ? 4 : 0;
}

function medianOf(ranks: readonly RankValue[]): number | null {
  const known = ranks.flatMap((one) => one.value ?? []).sort((a, b) => a - b);
  return known.length < 2 ? null : (known[known.length >> 1] ?? null);
}

/** Barriers of the same task, or of the plain workers when there is none. */
export function barriersNear(
  barriers: readonly Barrier[],
  task: string | null,
  at: { step: number | null; time: number | null },
): Barrier[] {
  return barriers
    .filter((barrier) => {
      if ((barrier.task_id ?? null) !== task) return false;
      const opened = barrier.created_at_ms;
      const close = at.time !== null && opened !== null && Math.abs(opened - at.time) < NEAR_MS;
      return close || (at.step !== null && barrier.step === at.step);
    })
    .slice(0, 6);
}

/** The newest checkpoint of the task that was complete at that step and moment; it may be removed by now. */
export function goodCheckpoint(
  checkpoints: readonly Checkpoint[],
  task: string | null,
  at: { step: number | null; time: number | null },
): Checkpoint | null {
  const before = checkpoints.filter((one) => {
    const saved = one.created_at_ms;
    return (
      (isGood(one) || one.status === "removed") &&
      (one.task_id ?? null) === task &&
      (at.step === null || one.step <= at.step) &&
      (at.time === null || saved === null || saved <= at.time)
    );
  });
  return before.sort((a, b) => b.step - a.step)[0] ?? null;
}
