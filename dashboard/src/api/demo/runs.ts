/** The simulated runs: when they began, how they stepped through restarts, and their series at any resolution. */
import { hashText } from "@/lib/colors";
import type { RunInfo, SeriesColumns, SeriesHead, SnapshotSeries } from "../wire";
import { type Curve, curvesOf, type Shape } from "./curves";

/** A stretch of steps without interruption. */
interface Leg {
  from: number;
  to: number;
  start: number;
}

const HISTORY_POINTS = 1200;
const RESTART_GAP_MS = 9_000;

export interface RunPlan {
  id: string;
  task: string;
  ranks: number;
  firstWorker: number;
  startedAgo: number;
  steps: number;
  restarts?: readonly { at: number; resume: number }[];
  active: boolean;
  shape: Partial<Shape> & Pick<Shape, "lr" | "stepMs" | "total">;
  config: Record<string, unknown>;
}

export class DemoRun {
  readonly shape: Shape;
  readonly start: number;
  readonly legs: Leg[] = [];
  active: boolean;
  step: number;
  /** Unix ms at which `step` was logged. */
  time: number;
  paused = false;
  name: string | null = null;
  notes: string | null = null;

  constructor(
    readonly plan: RunPlan,
    now: number,
  ) {
    this.shape = {
      seed: hashText(plan.id) % 100_000,
      tokensPerStep: 524_288,
      floor: 1.72,
      moe: true,
      nanAt: [],
      divergesAt: null,
      slowRank: null,
      ...plan.shape,
    };
    this.start = now - plan.startedAgo;
    this.active = plan.active;
    this.#layLegs();
    const last = this.legs.at(-1) ?? { from: 0, to: 0, start: this.start };
    this.step = last.to;
    this.time = last.start + (last.to - last.from) * this.shape.stepMs;
  }

  #layLegs(): void {
    let from = 0;
    let { start } = this;
    for (const { at, resume } of this.plan.restarts ?? []) {
      this.legs.push({ from, to: at, start });
      start += (at - from) * this.shape.stepMs + RESTART_GAP_MS;
      from = resume;
    }
    this.legs.push({ from, to: this.plan.steps, start });
  }

  /** Goes back to `step` after a failure; time does not. */
  rewind(step: number, now: number): void {
    this.legs.push({ from: step, to: step, start: now });
    this.step = step;
    this.time = now;
  }

  /** Steps finished by `now`, each with its time. */
  advance(now: number): { step: number; time: number }[] {
    const out: { step: number; time: number }[] = [];
    if (!this.active || this.paused) {
      this.time = Math.max(this.time, now - this.shape.stepMs);
      return out;
    }
    while (this.time + this.shape.stepMs <= now && this.step < this.shape.total) {
      this.step += 1;
      this.time += this.shape.stepMs;
      out.push({ step: this.step, time: this.time });
    }
    const leg = this.legs.at(-1);
    if (leg) leg.to = this.step;
    if (this.step >= this.shape.total) this.active = false;
    return out;
  }

  info(): RunInfo {
    const { plan } = this;
    return {
      run_id: plan.id,
      name: this.name,
      notes: this.notes,
      start_time: this.start / 1000,
      start_time_ms: this.start,
      last_event_time: this.time / 1000,
      last_event_time_ms: this.time,
      latest_step: this.step,
      is_active: this.active,
      state: this.active ? "running" : "finished",
      num_series: this.heads().length,
      num_points: curvesOf(this.shape).reduce(
        (sum, c) => sum + Math.floor(this.step / c.every) * (c.perRank ? plan.ranks : 1),
        0,
      ),
      task_id: plan.task,
      config: plan.config,
    };
  }

  heads(): { curve: Curve; rank: number }[] {
    return curvesOf(this.shape).flatMap((curve) =>
      Array.from({ length: curve.perRank ? this.plan.ranks : 1 }, (_, rank) => ({ curve, rank })),
    );
  }

  head(curve: Curve, rank: number, id: number): SeriesHead {
    const worker = this.plan.firstWorker + rank;
    const device = curve.metric.startsWith("sys.gpu") ? 0 : 65_535;
    return {
      id,
      run_id: this.plan.id,
      metric: curve.metric,
      host: `node-${Math.floor(worker / 4)}`,
      rank,
      device,
      unit: curve.unit,
    };
  }

  series(curve: Curve, rank: number, id: number): SnapshotSeries {
    const every = Math.max(curve.every, Math.ceil(this.plan.steps / HISTORY_POINTS / curve.every) * curve.every);
    const columns = this.sample(curve, rank, 0, Infinity, every);
    const total = Math.floor(this.plan.steps / curve.every);
    const nans = columns.bad.reduce((sum, count) => sum + count, 0);
    return {
      ...this.head(curve, rank, id),
      ...columns,
      total_points: Math.max(total, columns.steps.length),
      nan_count: nans,
    };
  }

  /** One point per `every` steps, standing for the steps since the one before. */
  sample(curve: Curve, rank: number, from: number, to: number, every: number): SeriesColumns {
    const out: SeriesColumns = { steps: [], times: [], values: [], min: [], max: [], bad: [] };
    for (const leg of this.legs) {
      for (let step = nextMultiple(Math.max(leg.from, from, 1), every); step <= Math.min(leg.to, to); step += every) {
        out.steps.push(step);
        out.times.push(Math.round(leg.start + (step - leg.from) * this.shape.stepMs));
        this.#fold(out, curve, rank, step, every);
      }
    }
    return out;
  }

  #fold(out: SeriesColumns, curve: Curve, rank: number, step: number, every: number): void {
    let [low, high, bad] = [Infinity, -Infinity, 0];
    let last: number | null = null;
    for (let at = step - every + curve.every; at <= step; at += curve.every) {
      const value = curve.value(this.shape, at, rank);
      if (value === null) bad += 1;
      else {
        last = value;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    out.values.push(last);
    out.min.push(last === null ? null : low);
    out.max.push(last === null ? null : high);
    out.bad.push(bad);
  }
}

function nextMultiple(value: number, of: number): number {
  return Math.ceil(value / of) * of;
}
