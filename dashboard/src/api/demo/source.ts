/** The demo source: the same interface as the live one, a cluster simulated in this browser, no request ever sent. */

import { ApiError } from "../client";
import type { Shard } from "../shards";
import type { DataSource, LogQuery, Requests, SeriesQuery, Sink } from "../source";
import type { CreateTask } from "../task";
import type { ClusterState, Delta, LogEntry, RunSeries, SeriesHead, Snapshot, SystemMetrics } from "../wire";
import { makeCourse } from "./course";
import { type Curve, curvesOf } from "./curves";
import type { LogWriter } from "./logs";
import { makePreview } from "./preview";
import { DemoRun } from "./runs";
import { World } from "./world";

const TICK_MS = 250;
const PAST_S = 300;

export class DemoSource implements DataSource {
  readonly kind = "demo";
  readonly requests: Requests;
  readonly #world: World;
  readonly #ids = new Map<string, number>();
  readonly #fresh: SeriesHead[] = [];
  #tick = 0;

  constructor(now: number = Date.now()) {
    this.#world = new World(now);
    this.requests = makeRequests(this.#world, (task) => this.#create(task));
  }

  open(sink: Sink): () => void {
    sink.link({ state: "live", detail: "Receiving simulated events.", retryAt: null });
    sink.event({ type: "snapshot", data: this.snapshot() });
    sink.event({ type: "state", data: stateOf(this.#world, Date.now()) });
    sink.event({ type: "log", data: { logs: this.#world.logs.take() } });
    const timer = setInterval(() => this.#beat(sink, Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }

  pastMetrics(): { time: number; metrics: SystemMetrics }[] {
    const now = Date.now();
    return Array.from({ length: PAST_S }, (_, i) => now - (PAST_S - i) * 1000).map((time) => ({
      time,
      metrics: this.#world.metrics(time),
    }));
  }

  snapshot(): Snapshot {
    const series = this.#world.runs.flatMap((run) =>
      run.heads().map(({ curve, rank }) => run.series(curve, rank, this.#idOf(run, curve, rank, false))),
    );
    return { epoch: "demo", runs: this.#world.runs.map((run) => run.info()), series, reduced: false };
  }

  #beat(sink: Sink, now: number): void {
    const world = this.#world;
    const alerts = world.alerts.length;
    const steps = world.tick(now);
    const points: Delta["points"] = [];
    for (const [run, done] of steps) points.push(...this.#points(run, done));
    const new_series = this.#fresh.splice(0);
    if (points.length > 0) sink.event({ type: "delta", data: { new_series, points } });
    this.#tick += 1;
    if (this.#tick % 2 === 0) sink.event({ type: "state", data: stateOf(world, now) });
    if (this.#tick % 40 === 0) sink.event({ type: "runs_meta", data: { runs: world.runs.map((run) => run.info()) } });
    const logs = world.logs.take();
    if (logs.length > 0) sink.event({ type: "log", data: { logs } });
    const fresh = world.alerts.slice(0, world.alerts.length - alerts);
    if (fresh.length > 0) sink.event({ type: "alert", data: { alerts: fresh } });
  }

  #points(run: DemoRun, done: readonly { step: number; time: number }[]): Delta["points"] {
    const out: Delta["points"] = [];
    for (const { curve, rank } of run.heads()) {
      const due = done.filter(({ step }) => step % curve.every === 0);
      if (due.length === 0) continue;
      const values = due.map(({ step }) => curve.value(run.shape, step, rank));
      out.push([
        this.#idOf(run, curve, rank, true),
        due.map((at) => at.step),
        due.map((at) => Math.round(at.time)),
        values,
      ]);
    }
    return out;
  }

  #idOf(run: DemoRun, curve: Curve, rank: number, live: boolean): number {
    const key = `${run.plan.id}\n${curve.metric}\n${rank}`;
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    const id = this.#ids.size + 1;
    this.#ids.set(key, id);
    if (live) this.#fresh.push(run.head(curve, rank, id));
    return id;
  }

  #create(task: CreateTask): string {
    const now = Date.now();
    const id = `task-${(0x9000 + this.#world.tasks.length).toString(16)}`;
    const lr = Number(task.config["learning_rate"] ?? 1e-3);
    const plan = {
      id: task.name,
      task: id,
      ranks: task.worker_count,
      firstWorker: 0,
      startedAgo: 0,
      steps: 0,
      active: true,
      config: task.config,
    };
    const run = new DemoRun({ ...plan, shape: { lr: lr > 0 ? lr : 1e-3, stepMs: 500, total: 2000, moe: false } }, now);
    const times = { started_at: now / 1000, started_at_ms: now, completed_at: null };
    const worker_ids = Array.from({ length: task.worker_count }, (_, i) => `worker-${i % 8}`);
    const { name, type, dataset_id, config, worker_count } = task;
    this.#world.addTask(
      {
        id,
        name,
        type,
        dataset_id,
        config,
        worker_count,
        status: "running",
        worker_ids,
        ...times,
        progress: 0,
        attempt: 1,
        reason: null,
      },
      run,
    );
    this.#world.logs.write(now, "info", "coordinator", `task ${id} (${name}) accepted, ${worker_count} workers`, {
      task: id,
    });
    return id;
  }
}

function stateOf(world: World, now: number): ClusterState {
  const coordinator = {
    connected: true,
    address: "demo",
    uptime: (now - world.born) / 1000 + 93_000,
    version: "demo",
    storage_backend: "s3",
    metric_store: "simulated",
    generation: 4,
  };
  const workers = world.workers.map((worker) => ({ ...worker }));
  const datasets = world.datasets.map((dataset) => ({ ...dataset }));
  return {
    workers,
    datasets,
    tasks: world.tasks,
    checkpoints: world.checkpoints,
    barriers: world.barriers,
    metrics: world.metrics(now),
    coordinator,
  };
}

function makeRequests(world: World, create: (task: CreateTask) => string): Requests {
  const refuse = async (): Promise<never> => {
    throw new ApiError(409, "demo", "The demo cannot do this.", "Switch to Live to act on a real cluster.");
  };
  return {
    status: async () => stateOf(world, Date.now()).coordinator ?? refuse(),
    dashboard: async () => stateOf(world, Date.now()),
    runs: async () => world.runs.map((run) => run.info()),
    alerts: async () => world.alerts,
    logs: async (query) => filterLogs(world.logs, query),
    shards: async (dataset) => makeShards(world, dataset),
    preview: async (dataset, worker, n) => makePreview(dataset, worker, n, world.main.step),
    points: async () => ({ epoch: "demo", series: [] }),
    checkpointRows: async () => [],
    outline: () => Promise.reject(new Error("the demo leaves no run out")),
    series: async (run, query) => sampleSeries(world, run, query),
    course: async (task) => makeCourse(world, task, Date.now()),
    createTask: async (task) => ({ task_id: create(task) }),
    stopTask: async (id) => stopTask(world, id),
    resumeTask: async (id) => resumeTask(world, id),
    registerDataset: refuse,
    editRun: async (id, change) => {
      const run = findRun(world, id);
      run.name = change.name || null;
      run.notes = change.notes || null;
    },
    deleteRun: async (id) => {
      if (findRun(world, id).active)
        throw new ApiError(409, "running", "This run is still going.", "Stop its task first.");
      world.runs = world.runs.filter((run) => run.plan.id !== id);
    },
    pinCheckpoint: async (id, pinned) => {
      world.checkpoints = world.checkpoints.map((one) => (one.id === id ? { ...one, pinned } : one));
    },
  };
}

function stopTask(world: World, id: string): void {
  const now = Date.now();
  const run = world.runs.find((one) => one.plan.task === id);
  if (run) run.active = false;
  world.tasks = world.tasks.map((task) =>
    task.id === id
      ? { ...task, status: "stopped", completed_at: now / 1000, completed_at_ms: now, reason: "stopped by user" }
      : task,
  );
  world.logs.write(now, "warn", "coordinator", `task ${id} stopped by user; last checkpoint kept`, { task: id });
}

function resumeTask(world: World, id: string): { from_step: number | null } {
  const run = world.runs.find((one) => one.plan.task === id);
  if (run) run.active = true;
  world.tasks = world.tasks.map((task) =>
    task.id === id
      ? { ...task, status: "running", completed_at: null, completed_at_ms: null, attempt: (task.attempt ?? 0) + 1 }
      : task,
  );
  return { from_step: run?.step ?? null };
}

function filterLogs({ lines: recent, archive }: LogWriter, query: LogQuery): LogEntry[] {
  const lines = query.before === undefined ? recent : [...archive, ...recent];
  const { limit = 100, level, task_id, worker_id, q, before, after } = query;
  const found = lines.filter(
    (line) =>
      (!level || line.level === level) &&
      (!task_id || line.task_id === task_id) &&
      (!worker_id || line.worker_id === worker_id) &&
      (!q || line.message.toLowerCase().includes(q.toLowerCase())) &&
      (before === undefined || line.timestamp < before) &&
      (after === undefined || line.timestamp > after),
  );
  return found.slice(-limit);
}

function makeShards(world: World, id: string): Shard[] {
  const dataset = world.datasets.find((one) => one.id === id);
  if (!dataset) throw new ApiError(404, "not_found", `There is no dataset ${id}.`, null);
  const owners = world.workers.filter((worker) =>
    id === "fineweb-sample" ? worker.id < "worker-6" : id === "imagenet-1k" ? worker.id >= "worker-6" : false,
  );
  const size = dataset.shard_size ?? 1;
  return Array.from({ length: dataset.shard_count ?? 0 }, (_, shard) => {
    const owner = owners[shard % Math.max(1, owners.length)];
    const turn = Math.floor(shard / Math.max(1, owners.length));
    const turns = (dataset.shard_count ?? 0) / Math.max(1, owners.length);
    const progress = owner ? Math.max(0, Math.min(100, (((dataset.progress ?? 0) / 100) * turns - turn) * 100)) : null;
    const end = Math.min((shard + 1) * size, dataset.total_samples ?? 0);
    return {
      shard_id: shard,
      worker_id: owner?.id ?? null,
      rank: owner?.rank ?? null,
      start_index: shard * size,
      end_index: end,
      progress,
    };
  });
}

function findRun(world: World, id: string): DemoRun {
  const run = world.runs.find((one) => one.plan.id === id);
  if (!run) throw new ApiError(404, "not_found", `There is no run ${id}.`, null);
  return run;
}

function sampleSeries(world: World, id: string, query: SeriesQuery): RunSeries[] {
  const run = findRun(world, id);
  const [from, to] = [query.from_step ?? 0, query.to_step ?? run.step];
  const wanted = curvesOf(run.shape).filter((curve) => !query.metric || curve.metric === query.metric);
  return wanted.flatMap((curve) => {
    const every = Math.max(1, Math.ceil((to - from) / curve.every / (query.points ?? 2000))) * curve.every;
    return Array.from({ length: curve.perRank ? run.plan.ranks : 1 }, (_, rank) => {
      const columns = run.sample(curve, rank, from, to, every);
      const { id: _id, ...head } = run.head(curve, rank, 0);
      return { ...head, ...columns, total_points: columns.steps.length, nan_count: 0 };
    });
  });
}

export function createDemoSource(): DataSource {
  return new DemoSource();
}
