/** Where a task's wall time went, as segments of one bar, and its attempts as lanes of one timeline. Pure. */
import type { AttemptRow, TimeShares } from "@/api/wire";

export interface Segment {
  key: string;
  label: string;
  /** What exactly was measured, for a person who asks. */
  hint: string;
  seconds: number;
  percent: number;
  /** A class of the bar's colours. */
  fill: string;
}

type Part = Exclude<keyof TimeShares, "wall_s">;

const PARTS: readonly { key: Part; label: string; hint: string; fill: string }[] = [
  { key: "training_s", label: "Training", hint: "ranks at work on steps that count", fill: "bg-ok" },
  { key: "barrier_s", label: "Barriers", hint: "ranks seen waiting at a barrier", fill: "bg-accent" },
  { key: "checkpoint_s", label: "Checkpoint stall", hint: "ranks seen held up by a save", fill: "bg-accent/55" },
  { key: "section_s", label: "Other sections", hint: "ranks inside a section of the script", fill: "bg-muted" },
  { key: "starting_s", label: "Starting", hint: "from the launch to the first step", fill: "bg-idle" },
  { key: "recovering_s", label: "Recovering", hint: "from a failure to the first step after it", fill: "bg-warn" },
  { key: "lost_s", label: "Lost work", hint: "steps after the last checkpoint, done again", fill: "bg-bad" },
  { key: "unmeasured_s", label: "Not measured", hint: "ranks worked while nobody watched", fill: "hatch" },
];

/** Only what took time; the percentages add up to 100. */
export function segmentsOf(shares: TimeShares): Segment[] {
  const wall = shares.wall_s > 0 ? shares.wall_s : 1;
  return PARTS.flatMap(({ key, ...rest }) => {
    const seconds = shares[key] ?? 0;
    return seconds > 0 ? [{ key, ...rest, seconds, percent: (seconds / wall) * 100 }] : [];
  });
}

/** Ends that nobody is to blame for. */
const CALM_ENDS: Partial<Record<NonNullable<AttemptRow["ended_by"]>, string>> = {
  grown: "grown",
  drained: "drained",
  asked: "left",
};

/** How an attempt ended, in a word: a task that grew, or whose host went away in order, has not failed. */
export function endedAs({ status, ended_by }: AttemptRow): string {
  if (status !== "recovering") return status;
  return (ended_by !== null && CALM_ENDS[ended_by]) || "failed";
}

export interface SizeBlock {
  attempt: AttemptRow;
  size: number;
  /** How many ranks the attempt before it had, when that was another number; and why the size changed. */
  before: number | null;
  why: string | null;
  /** Percent of the timeline. */
  start: number;
  end: number;
}

/** How many ranks each attempt had. Attempts of which that is not known are left out. */
export function sizesOf(attempts: readonly AttemptRow[], now: number): SizeBlock[] {
  const blocks: SizeBlock[] = [];
  for (const [place, { attempt, start, end }] of lanesOf(attempts, now).entries()) {
    if (attempt.size === null) continue;
    const last = blocks.at(-1)?.size ?? attempt.size;
    const changed = last !== attempt.size;
    const why = changed ? (attempts[place - 1]?.reason ?? null) : null;
    blocks.push({ attempt, size: attempt.size, before: changed ? last : null, why, start, end });
  }
  return blocks;
}

export interface Lane {
  attempt: AttemptRow;
  /** Percent of the timeline: where it starts, where work begins, where the part begins that was lost, where it ends. */
  start: number;
  working: number;
  lost: number;
  end: number;
  seconds: number;
}

export function lanesOf(attempts: readonly AttemptRow[], now: number): Lane[] {
  const from = Math.min(...attempts.map((one) => one.started_at_ms));
  const to = Math.max(...attempts.map((one) => one.ended_at_ms ?? now), from + 1);
  const place = (ms: number) => Math.min(100, Math.max(0, ((ms - from) / (to - from)) * 100));
  return attempts.map((attempt) => {
    const ended = attempt.ended_at_ms ?? Math.max(now, attempt.started_at_ms);
    const lasting = attempt.ended_at_ms === null;
    const working = attempt.working_at_ms ?? (lasting ? ended : attempt.started_at_ms);
    return {
      attempt,
      start: place(attempt.started_at_ms),
      working: place(Math.min(working, ended)),
      lost: place(ended - (attempt.lost_s ?? 0) * 1000),
      end: place(ended),
      seconds: (ended - attempt.started_at_ms) / 1000,
    };
  });
}
