import type { Fork, Task } from "@/api/wire";
import { formatBytes, formatCount, formatDuration } from "@/lib/format";

const STOPPABLE: readonly Task["status"][] = ["queued", "running", "recovering"];

export function canStop(task: Task): boolean {
  return STOPPABLE.includes(task.status);
}

export function canResume(task: Task): boolean {
  return task.status === "stopped" || task.status === "failed";
}

/** How many ranks an elastic task has; nothing of one whose size is fixed. */
export function sizeFacts({ size, min_workers, worker_count }: Task): [name: string, value: string][] {
  if (!(min_workers < worker_count)) return [];
  const asked = `${formatCount(min_workers)} to ${formatCount(worker_count)} asked for`;
  return [["Ranks", size === null ? asked : `${formatCount(size)} now, ${asked}`]];
}

/** What it has used of its restarts, in words; nothing from a server that does not say. */
export function budgetFacts({ budget }: Task): [name: string, value: string][] {
  if (!budget) return [];
  const row = `${budget.failures_in_a_row} in a row without a new checkpoint (${budget.max_failures_in_a_row} allowed)`;
  const allowed = formatCount(budget.max_failures);
  const over = budget.max_failures > 0 ? `all ${allowed} restarts used` : "no restart allowed";
  const used =
    budget.failures > budget.max_failures ? over : `${formatCount(budget.failures)} of ${allowed} restarts used`;
  const many = budget.losses_in_all > 1 ? "s" : "";
  const lost = `${formatCount(budget.losses_in_all)} kill${many} from outside or lost host${many}`;
  const within = `within ${budget.window_s / 3600} h without a new checkpoint`;
  return [
    ["Own failures", budget.failures > 0 ? `${used}, ${row}` : used],
    [
      "Losses",
      budget.losses_in_all > 0
        ? `${lost} in all; ${formatCount(budget.losses)} of ${formatCount(budget.max_losses)} ${within}`
        : `none; ${formatCount(budget.max_losses)} allowed ${within}`,
    ],
  ];
}

/** Where a fork began, and what it leaves out. */
export function forkFact({ step, skip, by }: Fork): string {
  const left = skip.map(([first, last]) => (first === last ? `${first}` : `${first}..${last}`));
  const without = left.length > 0 ? `, without the batches of steps ${left.join(", ")}` : "";
  return `at step ${formatCount(step)}${without}; ${by}`;
}

/** After how long without a step a rank of it is ended. */
export function hangFact({ hang_timeout_s: limit }: Task): string {
  if (limit === 0) return "never ended";
  return limit ? `ended after ${formatDuration(limit)} without a step` : "ended after a time learned from their steps";
}

/** How many interpreters wait for a restart, and what they hold; nothing for a task that asked for none. */
export function spareFacts({ spares, warm_spares }: Task): [name: string, value: string][] {
  if (!spares) return [];
  if (!warm_spares) return [["Spares", `${formatCount(spares)} per host, none yet`]];
  const { warm, wanted, memory_bytes } = warm_spares;
  const held = warm > 0 ? `, ${formatBytes(memory_bytes)} held` : "";
  return [["Spares", `${formatCount(warm)} of ${formatCount(wanted)} warm${held}`]];
}

/** How many cards each of its ranks holds; nothing for a task that asked for none. */
export function gpuFacts({ gpus_per_worker }: Task): [name: string, value: string][] {
  return gpus_per_worker ? [["GPUs", `${formatCount(gpus_per_worker)} per rank`]] : [];
}

/** The hosts that it has left because they were slow; nothing while there are none. */
export function excludedFacts({ excluded_hosts }: Task): [name: string, value: string][] {
  return excluded_hosts?.length ? [["Slow hosts left", excluded_hosts.join(", ")]] : [];
}

/** Seconds from start to end, or to now. */
export function elapsed(task: Task, now: number): number | null {
  const start = task.started_at_ms;
  if (start === null) return null;
  return ((task.completed_at_ms ?? now) - start) / 1000;
}
