/** Whether a run goes on, in the same words on every page. */
import type { RunInfo, Task } from "@/api/wire";

const ENDED = ["completed", "failed", "stopped", "finished", "killed", "lost"];

/** A run counts as active for five minutes after its last point; its task knows better, and so does its own goodbye. */
export function isRunning(run: RunInfo, tasks: readonly Task[]): boolean {
  const known = tasks.some((one) => one.id === run.task_id);
  return (known || run.is_active) && !ENDED.includes(runStatus(run, tasks));
}

export function runStatus(run: RunInfo, tasks: readonly Task[]): string {
  const task = tasks.find((one) => one.id === run.task_id);
  if (task) return task.status;
  if (run.state) return run.state;
  if (run.status && ENDED.includes(run.status)) return run.status;
  return run.is_active ? "running" : "finished";
}

/** Of runs that are sorted newest first: that of a task that works, else one that goes on by itself, else the newest. */
export function leadOf(runs: readonly RunInfo[], tasks: readonly Task[]): RunInfo | null {
  const going = runs.filter((run) => isRunning(run, tasks));
  const working = going.find((run) => tasks.some((task) => task.id === run.task_id && task.status !== "queued"));
  return working ?? going[0] ?? runs[0] ?? null;
}
