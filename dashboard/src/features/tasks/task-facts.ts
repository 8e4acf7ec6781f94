import type { Task } from "@/api/wire";
import { toMs } from "@/lib/format";

const STOPPABLE: readonly Task["status"][] = ["queued", "running", "recovering"];

export function canStop(task: Task): boolean {
  return STOPPABLE.includes(task.status);
}

/** Seconds from start to end, or to now. */
export function elapsed(task: Task, now: number): number | null {
  const start = toMs(task.started_at, task.started_at_ms);
  if (start === null) return null;
  return ((toMs(task.completed_at, task.completed_at_ms) ?? now) - start) / 1000;
}
