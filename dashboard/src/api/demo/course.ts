/** The simulated course of a task: one failure in a task that is at its second attempt, none else. */
import { ApiError } from "../client";
import type { Attempt, Course } from "../course";
import type { World } from "./world";

const START_MS = 9000;
const RECOVERY_MS = 14_000;
const LOST_MS = 41_000;

export function makeCourse(world: World, id: string, now: number): Course {
  const task = world.tasks.find((one) => one.id === id);
  if (!task) throw new ApiError(404, "not_found", `There is no task ${id}.`, null);
  const began = task.started_at_ms ?? (task.started_at === null ? now : task.started_at * 1000);
  const ended = task.completed_at === null ? null : (task.completed_at_ms ?? task.completed_at * 1000);
  const run = world.runs.find((one) => one.plan.task === id);
  const broke = (task.attempt ?? 1) > 1 ? began + ((ended ?? now) - began) * 0.4 : null;
  const attempt = (number: number, start: number, end: number | null): Attempt => ({
    attempt: number,
    status: end !== null && end === broke ? "recovering" : task.status,
    reason: end !== null && end === broke ? "rank 5 was killed by signal 9; all ranks go back" : (task.reason ?? null),
    started_at_ms: start,
    working_at_ms: Math.min(start + START_MS, end ?? now),
    ended_at_ms: end,
    resume_step: null,
    top_step: number === (task.attempt ?? 1) ? (run?.step ?? null) : null,
    lost_steps: null,
    lost_s: end !== null && end === broke ? LOST_MS / 1000 : null,
  });
  const attempts =
    broke === null
      ? [attempt(1, began, ended)]
      : [attempt(1, began, broke), attempt(2, broke + RECOVERY_MS - START_MS, ended)];
  const wall = Math.max(1, ((ended ?? now) - began) / 1000);
  const starting = Math.min(wall, START_MS / 1000);
  const recovering = broke === null ? 0 : RECOVERY_MS / 1000;
  const lost = broke === null ? 0 : LOST_MS / 1000;
  const useful = Math.max(0, wall - starting - recovering - lost);
  const shares = {
    wall_s: wall,
    starting_s: starting,
    recovering_s: recovering,
    lost_s: lost,
    training_s: useful * 0.91,
    barrier_s: useful * 0.06,
    checkpoint_s: useful * 0.03,
    section_s: 0,
    unmeasured_s: 0,
  };
  return { task_id: id, attempts, shares, goodput_percent: (shares.training_s / wall) * 100 };
}
