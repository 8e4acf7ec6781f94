/** Whether a run goes on, in the same words on every page. */
import type { RunInfo, Task } from "@/api/wire";

const ENDED = ["completed", "failed", "stopped"];

/** A run counts as active for five minutes after its last point; its task knows better. */
export function isRunning(run: RunInfo, tasks: readonly Task[]): boolean {
  const task = tasks.find((one) => one.id === run.task_id);
  return run.is_active && !(task && ENDED.includes(task.status));
}

export function runStatus(run: RunInfo, tasks: readonly Task[]): string {
  const task = tasks.find((one) => one.id === run.task_id);
  return task?.status ?? (run.is_active ? "running" : "finished");
}
