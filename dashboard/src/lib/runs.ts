/** How a run stands, in the same words on every page. The observatory decides it; nothing here does. */
import type { RunInfo, Task } from "@/api/wire";

export function isRunning(run: RunInfo): boolean {
  return run.state === "running";
}

/** The state and, where there is one, why: for a title. */
export function stateText(run: RunInfo): string {
  return run.reason ? `${run.state}: ${run.reason}` : run.state;
}

/** Of runs that are sorted newest first: that of a task that works, else one that goes on by itself, else the newest. */
export function leadOf(runs: readonly RunInfo[], tasks: readonly Task[]): RunInfo | null {
  const going = runs.filter(isRunning);
  const working = going.find((run) => tasks.some((task) => task.id === run.task_id && task.status !== "queued"));
  return working ?? going[0] ?? runs[0] ?? null;
}

export function displayName(run: Pick<RunInfo, "run_id" | "name">): string {
  return run.name || run.run_id;
}
