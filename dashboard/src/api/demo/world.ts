/** The simulated cluster: steps its runs, and on a fixed script slows a rank, kills a worker, saves checkpoints. */
import type { Alert, Barrier, Checkpoint, Dataset, SystemMetrics, Task, Worker, WorkerStatus } from "../wire";
import { curvesOf } from "./curves";
import { LogWriter, logStep } from "./logs";
import { normal, unit } from "./noise";
import { makeDatasets, makeWorker, NUM_WORKERS, PLANS } from "./plans";
import { barrierOf, resources, taskOf } from "./records";
import { DemoRun } from "./runs";

const CYCLE_MS = 180_000;
const VICTIM = 3;
const CHECKPOINT_EVERY = 100;
const SAVE_MS = 4_200;
const CHECKPOINT_BYTES = 7.84e9;

export class World {
  runs: DemoRun[];
  /** The two runs of the script; they are active, so nobody can delete them. */
  readonly main: DemoRun;
  readonly #second: DemoRun;
  readonly logs = new LogWriter();
  readonly workers: Worker[];
  readonly datasets: Dataset[];
  tasks: Task[];
  checkpoints: Checkpoint[] = [];
  barriers: Barrier[] = [];
  alerts: Alert[] = [];
  #nextAlert = 1;
  #cycle = -1;
  #phase = "";

  constructor(readonly born: number) {
    this.runs = PLANS.map((plan) => new DemoRun(plan, born));
    this.main = this.runs[0] as DemoRun;
    this.#second = this.runs[1] as DemoRun;
    this.workers = Array.from({ length: NUM_WORKERS }, (_, i) => makeWorker(i, born));
    this.datasets = makeDatasets(born);
    this.tasks = this.runs.map((run) => taskOf(run));
    this.#past();
  }

  alert(time: number, kind: string, severity: Alert["severity"], message: string, at: Partial<Alert> = {}): void {
    this.alerts.unshift({
      id: `alert-${this.#nextAlert++}`,
      timestamp: time / 1000,
      timestamp_ms: Math.round(time),
      kind,
      severity,
      message,
      run_id: null,
      task_id: null,
      worker_id: null,
      rank: null,
      step: null,
      ...at,
    });
  }

  /** Moves everything to `now`; new steps per run come back for the delta. */
  tick(now: number): Map<DemoRun, { step: number; time: number }[]> {
    this.#script(now);
    const steps = new Map<DemoRun, { step: number; time: number }[]>();
    for (const run of this.runs) {
      const done = run.advance(now);
      if (done.length > 0) steps.set(run, done);
      for (const { step, time } of done) this.#stepped(run, step, time);
    }
    this.#heartbeats(now);
    this.#save(now);
    this.#follow(now);
    return steps;
  }

  metrics(now: number): SystemMetrics {
    const second = Math.floor(now / 1000);
    const saving = this.checkpoints.some((one) => one.status === "in_progress");
    const alive = this.workers.filter(
      (worker) => worker.status === "active" || worker.status === "checkpointing",
    ).length;
    return {
      checkpoint_throughput: saving ? 1720 + 160 * normal(3, second) : 0,
      coordinator_rps: 46 + 5 * normal(4, second) + (saving ? 14 : 0),
      active_workers: alive,
      total_workers: this.workers.length,
      barrier_latency_p99: 18 + 3 * Math.abs(normal(5, Math.floor(second / 5))) + (this.#phase === "slow" ? 910 : 0),
      shard_assignment_time: 1.4 + 0.3 * Math.abs(normal(6, Math.floor(second / 15))),
    };
  }

  addTask(task: Task, run: DemoRun | null): void {
    this.tasks = [task, ...this.tasks];
    if (run) this.runs.push(run);
  }

  #stepped(run: DemoRun, step: number, time: number): void {
    const { shape, plan } = run;
    const value = (metric: string) =>
      curvesOf(shape)
        .find((curve) => curve.metric === metric)
        ?.value(shape, step, 0) ?? null;
    const { task, firstWorker, ranks } = plan;
    logStep(this.logs, {
      task,
      step,
      time,
      loss: value("loss"),
      tokens: value("throughput/tokens_per_sec"),
      firstWorker,
      ranks,
    });
    if (run === this.main && step % CHECKPOINT_EVERY === 0) this.#beginSave(run, step, time);
    if (run === this.main && step % 20 === 0) {
      const done = barrierOf(time, step, {
        arrived: ranks,
        total: ranks,
        status: "complete",
        wait_ms: 14 + 6 * unit(8, step),
      });
      this.barriers = [done, ...this.barriers.filter((one) => one.status !== "waiting")].slice(0, 40);
    }
  }

  #beginSave(run: DemoRun, step: number, time: number): void {
    this.checkpoints.unshift({
      id: `ckpt-${run.plan.id}-${step}`,
      step,
      epoch: 1,
      size: CHECKPOINT_BYTES + (step % 900) * 1e4,
      path: `s3://strata-checkpoints/${run.plan.id}/step-${String(step).padStart(8, "0")}`,
      created_at: time / 1000,
      created_at_ms: time,
      worker_id: "worker-0",
      status: "in_progress",
      task_id: run.plan.task,
      duration_s: null,
      throughput: null,
      verified: null,
      pinned: false,
    });
    this.logs.write(time, "info", "worker", `checkpoint step ${step}: staged in 74 ms, writing 7.84 GB`, {
      task: run.plan.task,
      worker: 0,
    });
  }

  #save(now: number): void {
    this.checkpoints = this.checkpoints.slice(0, 80).map((one) => {
      const began = one.created_at_ms ?? now;
      if (one.status !== "in_progress" || now - began < SAVE_MS) return one;
      const duration = 4.2 + 0.6 * unit(12, one.step);
      this.logs.write(
        began + duration * 1000,
        "info",
        "coordinator",
        `checkpoint ${one.id} committed, ${duration.toFixed(1)} s`,
        {
          task: one.task_id ?? "",
        },
      );
      return {
        ...one,
        status: "completed" as const,
        duration_s: duration,
        throughput: (one.size ?? 0) / duration / 1e6,
        verified: true,
      };
    });
  }

  /** Straggler at 25 s, loss of a worker at 80 s, back at 104 s; then round again. */
  #script(now: number): void {
    const at = (now - this.born) % CYCLE_MS;
    const cycle = Math.floor((now - this.born) / CYCLE_MS);
    const phase =
      at < 25_000
        ? "calm"
        : at < 55_000
          ? "slow"
          : at < 80_000
            ? "calm2"
            : at < 92_000
              ? "lost"
              : at < 104_000
                ? "recovering"
                : "healed";
    if (phase === this.#phase && cycle === this.#cycle) return;
    this.#phase = phase;
    this.#cycle = cycle;
    const run = this.main;
    const here = { run_id: run.plan.id, task_id: run.plan.task, step: run.step };
    if (phase === "slow") {
      run.shape.slowRank = { rank: 5, from: run.step, to: run.step + 27 };
      this.alert(
        now,
        "straggler",
        "warning",
        "Rank 5 takes 2.1× the median step time; the others wait for it at the barrier.",
        { ...here, rank: 5, worker_id: "worker-5" },
      );
      this.logs.write(now, "warn", "coordinator", "rank 5 is slow: 2.31 s per step against a median of 1.10 s", {
        task: run.plan.task,
        worker: 5,
      });
    }
    if (phase === "lost") this.#lose(now);
    if (phase === "recovering")
      this.logs.write(
        now,
        "info",
        "agent",
        `worker-${VICTIM} started again (attempt 3), restoring from step ${run.step - (run.step % 100)}`,
        { task: run.plan.task, worker: VICTIM },
      );
    if (phase === "healed") {
      run.rewind(run.step - (run.step % CHECKPOINT_EVERY), now);
      run.paused = false;
      this.logs.write(now, "info", "coordinator", "generation 5: all 6 ranks present, training resumes", {
        task: run.plan.task,
      });
      this.alert(
        now,
        "recovered",
        "info",
        `Rank ${VICTIM} is back after 24 s; training resumed from step ${run.step}.`,
        { ...here, rank: VICTIM, worker_id: `worker-${VICTIM}`, step: run.step },
      );
    }
  }

  #lose(now: number): void {
    const run = this.main;
    run.paused = true;
    const reason = `worker-${VICTIM} exited with signal 9; rank ${VICTIM} did not arrive`;
    const name = `step-${run.step}`;
    const broken = barrierOf(now, run.step, { status: "broken", missing: [`worker-${VICTIM}`], reason });
    this.barriers = [broken, ...this.barriers].slice(0, 40);
    this.alert(
      now,
      "worker_lost",
      "critical",
      `Worker worker-${VICTIM} (rank ${VICTIM}) was lost: killed by signal 9.`,
      { run_id: run.plan.id, task_id: run.plan.task, worker_id: `worker-${VICTIM}`, rank: VICTIM, step: run.step },
    );
    this.logs.write(now, "error", "agent", `worker-${VICTIM} exited with signal 9 (out of memory?)`, {
      task: run.plan.task,
      worker: VICTIM,
    });
    this.logs.write(now + 3, "error", "coordinator", `barrier ${name} broken: ${reason}`, { task: run.plan.task });
  }

  #heartbeats(now: number): void {
    const saving = this.checkpoints[0]?.status === "in_progress";
    this.workers.forEach((worker, i) => {
      const run = i < 6 ? this.main : this.#second;
      const dead = i === VICTIM && this.#phase === "lost";
      if (!dead) worker.last_heartbeat_ms = now - Math.floor(unit(21, i, Math.floor(now / 1000)) * 900);
      worker.last_heartbeat = (worker.last_heartbeat_ms ?? now) / 1000;
      worker.status = this.#statusOf(i, dead, saving);
      worker.state = dead
        ? "ERROR"
        : worker.status === "checkpointing"
          ? "CHECKPOINTING"
          : worker.status === "recovering"
            ? "RECOVERING"
            : worker.status === "idle"
              ? "IDLE"
              : "TRAINING";
      worker.reason = dead ? "killed by signal 9" : null;
      worker.current_step = run.step;
      worker.assigned_shards = i < 6 ? 16 : i === 6 ? 65 : 64;
      worker.resources = dead ? null : resources(i, now, worker.status);
    });
  }

  #statusOf(i: number, dead: boolean, saving: boolean): WorkerStatus {
    if (dead) return "failed";
    if (i === VICTIM && this.#phase === "recovering") return "recovering";
    if (i < 6 && this.main.paused) return "idle";
    return i === 0 && saving ? "checkpointing" : "active";
  }

  #follow(now: number): void {
    const paused = this.main.paused;
    this.tasks = this.tasks.map((task) => {
      const run = this.runs.find((one) => one.plan.task === task.id);
      if (!run || !["running", "recovering", "queued"].includes(task.status)) return task;
      const progress = (100 * run.step) / run.shape.total;
      if (progress >= 100)
        return { ...task, status: "completed", progress: 100, completed_at: now / 1000, completed_at_ms: now };
      const status = run === this.main && paused ? "recovering" : run.active ? "running" : task.status;
      return { ...task, status, progress, reason: status === "recovering" ? `rank ${VICTIM} was lost` : null };
    });
    for (const dataset of this.datasets) {
      if (dataset.progress !== null) dataset.progress = (dataset.progress + 0.004) % 100;
    }
    this.#wait(now);
  }

  /** While a rank is slow, the others stand at the barrier of the next step. */
  #wait(now: number): void {
    const step = this.main.step + 1;
    const open = this.barriers.find((one) => one.status === "waiting");
    if (this.#phase === "slow" && open?.step === step) return;
    this.barriers = this.barriers.filter((one) => one !== open);
    if (this.#phase === "slow")
      this.barriers.unshift(barrierOf(now, step, { status: "waiting", missing: ["worker-5"] }));
  }

  /** What happened before the page was opened. */
  #past(): void {
    const run = this.main;
    const leg = run.legs[0];
    const timeOf = (step: number) => (leg ? leg.start + (step - leg.from) * run.shape.stepMs : this.born);
    const here = { run_id: run.plan.id, task_id: run.plan.task };
    const diverged = this.runs[2] as DemoRun;
    this.alert(diverged.time, "nan", "critical", "Loss is NaN for 3 steps and does not come back.", {
      run_id: diverged.plan.id,
      task_id: diverged.plan.task,
      rank: 0,
      step: 3458,
    });
    this.alert(
      timeOf(4120),
      "nan",
      "critical",
      "Loss is NaN at steps 4,120–4,122; gradient norm rose to 14 just before.",
      { ...here, rank: 0, step: 4120 },
    );
    this.alert(
      timeOf(6182),
      "worker_lost",
      "critical",
      "Worker worker-3 (rank 3) was lost; training resumed from step 6,000.",
      { ...here, worker_id: "worker-3", rank: 3, step: 6182 },
    );
    this.alert(this.born - 2_000_000, "straggler", "warning", "Rank 4 took 2.1× the median step time for 320 steps.", {
      ...here,
      worker_id: "worker-4",
      rank: 4,
      step: 8300,
    });
    this.alert(
      this.born - 900_000,
      "checkpoint_slow",
      "info",
      "Checkpoint at step 9,400 took 9.1 s, twice the usual.",
      { ...here, step: 9400 },
    );
    const last = run.step - (run.step % CHECKPOINT_EVERY);
    for (let step = last - 3000; step <= last; step += CHECKPOINT_EVERY)
      this.#beginSave(run, step, run.time - (run.step - step) * run.shape.stepMs);
    this.#save(this.born);
    this.checkpoints = this.checkpoints.map((one) =>
      one.step === last - 1300
        ? {
            ...one,
            status: "failed" as const,
            verified: false,
            throughput: null,
            duration_s: null,
            reason: "worker-3 was lost before its vote",
          }
        : one.step === 9000
          ? { ...one, pinned: true }
          : one,
    );
    this.logs.lines.length = 0;
    this.logs.take();
    // The hours of the NaN and of the lost worker, for whoever asks what happened then.
    for (const [from, to] of [
      [3990, 4160],
      [6100, 6182],
    ] as const) {
      for (let step = from; step <= to; step += 1) this.#stepped(run, step, timeOf(step));
    }
    this.logs.write(timeOf(6182), "error", "agent", "worker-3 exited with signal 9 (out of memory?)", {
      task: run.plan.task,
      worker: VICTIM,
    });
    this.#save(this.born);
    this.logs.archive = this.logs.take();
    this.logs.lines.length = 0;
    for (let step = run.step - 1200; step <= run.step; step += 1)
      this.#stepped(run, step, run.time - (run.step - step) * run.shape.stepMs);
    this.checkpoints = [...new Map(this.checkpoints.map((one) => [one.id, one] as const).reverse()).values()].sort(
      (a, b) => b.step - a.step,
    );
    this.#save(this.born);
    this.logs.lines.sort((a, b) => a.timestamp - b.timestamp);
    this.#heartbeats(this.born);
  }
}
