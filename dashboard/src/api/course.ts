/** The shape of GET /api/tasks/{id}/course. */
import type { Nullable, TaskStatus } from "./wire";

/** Seconds of wall time by what they went into; null = nobody measured it. */
export interface CourseShares {
  wall_s: number;
  starting_s: number;
  recovering_s: number;
  lost_s: number;
  training_s: Nullable<number>;
  barrier_s: Nullable<number>;
  checkpoint_s: Nullable<number>;
  section_s: Nullable<number>;
  unmeasured_s: number;
}

export interface Attempt {
  attempt: number;
  /** How it ended, or the task's status while it lasts. */
  status: TaskStatus;
  reason: Nullable<string>;
  started_at_ms: number;
  /** Its first point. */
  working_at_ms: Nullable<number>;
  ended_at_ms: Nullable<number>;
  resume_step: Nullable<number>;
  top_step: Nullable<number>;
  /** Done again by the next attempt. */
  lost_steps: Nullable<number>;
  lost_s: Nullable<number>;
}

export interface Course {
  task_id: string;
  attempts: Attempt[];
  shares: Nullable<CourseShares>;
  goodput_percent: Nullable<number>;
}
