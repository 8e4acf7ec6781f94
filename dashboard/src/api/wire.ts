/** The shapes on the wire of REST and SSE. Nothing here has behaviour. */
import type { Budget } from "./task";

import type { Delta, Snapshot } from "./wire-series";

export type * from "./wire-series";

export type Nullable<T> = T | null;

export type WorkerStatus = "active" | "idle" | "checkpointing" | "recovering" | "failed";
export type TaskStatus = "queued" | "running" | "recovering" | "stopping" | "completed" | "failed" | "stopped";
export type CheckpointStatus = "in_progress" | "completed" | "failed" | "removed";
export type BarrierStatus = "waiting" | "complete" | "broken";
export type LogLevel = "debug" | "info" | "warn" | "error";
export type Severity = "info" | "warning" | "critical";

import type { Status } from "./status";

export type { Status };

export interface GpuMetrics {
  gpu_id: number;
  utilization_percent: number;
  memory_used_bytes: number;
  memory_total_bytes: number;
  temperature_celsius: Nullable<number>;
}

export interface Resources {
  cpu_percent: Nullable<number>;
  memory_used_bytes: Nullable<number>;
  memory_total_bytes?: Nullable<number>;
  gpu_metrics: GpuMetrics[];
  disk_read_bytes: Nullable<number>;
  disk_write_bytes: Nullable<number>;
  network_rx_bytes: Nullable<number>;
  network_tx_bytes: Nullable<number>;
}

export interface Worker {
  id: string;
  ip: string;
  port: number;
  status: WorkerStatus;
  state?: string;
  gpu_count: number;
  last_heartbeat: Nullable<number>;
  last_heartbeat_ms?: Nullable<number>;
  assigned_shards: Nullable<number>;
  current_epoch: Nullable<number>;
  current_step: Nullable<number>;
  current_task: Nullable<string>;
  rank: Nullable<number>;
  host: Nullable<string>;
  resources: Nullable<Resources>;
  reason?: Nullable<string>;
  incarnation?: Nullable<string>;
  generation?: Nullable<number>;
  /** What it says it is doing inside a step, such as data or barrier. */
  section?: Nullable<string>;
  step_time_s?: Nullable<number>;
  agent_id?: Nullable<string>;
}

export interface Dataset {
  id: string;
  name: Nullable<string>;
  total_samples: Nullable<number>;
  shard_size: Nullable<number>;
  shard_count: Nullable<number>;
  format: string;
  shuffle: boolean;
  seed: Nullable<number>;
  path: string;
  registered_at: Nullable<number>;
  epoch: Nullable<number>;
  progress: Nullable<number>;
  queues?: DatasetQueue[];
}

/** A dataset that is read in queue mode by one task. */
export interface DatasetQueue {
  task_id: Nullable<string>;
  epoch: number;
  num_samples: number;
  num_shards: number;
  committed_samples: number;
  leased_samples: number;
  remaining_samples: number;
  leased_shards: number;
  read_shards: number;
  /** Open leases by worker. */
  workers: Record<string, number>;
  finished: boolean;
}

export interface Checkpoint {
  id: string;
  step: number;
  epoch: Nullable<number>;
  size: Nullable<number>;
  path: string;
  created_at: Nullable<number>;
  created_at_ms?: Nullable<number>;
  worker_id: Nullable<string>;
  status: CheckpointStatus;
  task_id?: Nullable<string>;
  duration_s?: Nullable<number>;
  /** MB/s */
  throughput?: Nullable<number>;
  verified?: Nullable<boolean>;
  pinned?: Nullable<boolean>;
  reason?: Nullable<string>;
}

/** A point of a `checkpoint*` metric as its writer left it. */
export interface CheckpointRow {
  metric: string;
  host: string;
  rank: number;
  step: number;
  value: Nullable<number>;
  unit: string;
  event_time_ms: number;
  tags: Record<string, unknown>;
}

export interface Barrier {
  id: string;
  name: string;
  arrived: number;
  total: number;
  status: BarrierStatus;
  created_at: Nullable<number>;
  created_at_ms?: Nullable<number>;
  missing: (string | { worker_id: string; rank?: Nullable<number>; last_heartbeat_ms?: Nullable<number> })[];
  reason: Nullable<string>;
  step?: Nullable<number>;
  task_id?: Nullable<string>;
  wait_ms?: Nullable<number>;
}

export interface SystemMetrics {
  checkpoint_throughput: Nullable<number>;
  coordinator_rps: Nullable<number>;
  active_workers: Nullable<number>;
  total_workers: Nullable<number>;
  barrier_latency_p99: Nullable<number>;
  shard_assignment_time: Nullable<number>;
  barrier_wait_p99?: Nullable<number>;
  journal_commit_p99?: Nullable<number>;
  loop_lag?: Nullable<number>;
}

export interface Task {
  id: string;
  name: string;
  type: string;
  status: TaskStatus;
  worker_ids: string[];
  dataset_id: Nullable<string>;
  started_at: Nullable<number>;
  started_at_ms?: Nullable<number>;
  completed_at: Nullable<number>;
  completed_at_ms?: Nullable<number>;
  /** 0–100 */
  progress: Nullable<number>;
  config: Record<string, unknown>;
  attempt?: Nullable<number>;
  reason?: Nullable<string>;
  worker_count?: Nullable<number>;
  launcher?: Nullable<string>;
  budget?: Budget;
}

export interface LogEntry {
  id: string;
  timestamp: number;
  timestamp_ms?: number;
  level: LogLevel;
  message: string;
  source: string;
  task_id: Nullable<string>;
  worker_id: Nullable<string>;
  rank?: Nullable<number>;
}

export interface Alert {
  id: string;
  timestamp: number;
  timestamp_ms: number;
  kind: string;
  severity: Severity;
  message: string;
  run_id: Nullable<string>;
  task_id: Nullable<string>;
  worker_id: Nullable<string>;
  rank: Nullable<number>;
  step: Nullable<number>;
}

export type RunState = "running" | "finished" | "failed" | "killed" | "lost";

export interface RunInfo {
  run_id: string;
  start_time: Nullable<number>;
  start_time_ms?: Nullable<number>;
  last_event_time: Nullable<number>;
  last_event_time_ms?: Nullable<number>;
  latest_step: Nullable<number>;
  is_active: boolean;
  /** Decided by the observatory. */
  state: RunState;
  /** Why it ended so. */
  reason?: Nullable<string>;
  num_series?: Nullable<number>;
  num_points?: Nullable<number>;
  task_id?: Nullable<string>;
  config?: Nullable<Record<string, unknown>>;
  name?: Nullable<string>;
  notes?: Nullable<string>;
  /** What it said of itself last: running, finished, failed. */
  status?: Nullable<string>;
}

export interface ClusterState {
  workers?: Worker[];
  tasks?: Task[];
  datasets?: Dataset[];
  checkpoints?: Checkpoint[];
  barriers?: Barrier[];
  metrics?: SystemMetrics;
  coordinator?: Status;
}

export type StreamEvent =
  | { type: "snapshot"; data: Snapshot }
  | { type: "delta"; data: Delta }
  | { type: "runs_meta"; data: { runs: RunInfo[]; deleted?: string[] } }
  | { type: "state"; data: ClusterState }
  | { type: "log"; data: { logs: LogEntry[] } }
  | { type: "alert"; data: { alerts: Alert[] } }
  | { type: "resync"; data: { reason: string } };

export type StreamEventType = StreamEvent["type"];

export interface Dashboard extends ClusterState {
  logs?: LogEntry[];
}
