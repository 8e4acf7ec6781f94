/** What the rest of the dashboard needs from a source of data. Two implementations: live.ts and demo/source.ts. */

import type { Course } from "./course";
import type { Preview, Shard } from "./shards";
import type { CreateTask } from "./task";
import type {
  Alert,
  CheckpointRow,
  Dashboard,
  Dataset,
  LogEntry,
  OutlineAnswer,
  PointsAnswer,
  RunInfo,
  RunSeries,
  Status,
  StreamEvent,
  SystemMetrics,
} from "./wire";

export type LinkState = "connecting" | "live" | "disconnected";

export interface Link {
  state: LinkState;
  /** One sentence for a person: why, and what happens next. */
  detail: string;
  /** Unix ms of the next try, when one is planned. */
  retryAt: number | null;
}

/** Where a source writes. Called in order, never concurrently. */
export interface Sink {
  event(event: StreamEvent): void;
  link(link: Link): void;
}

export interface LogQuery {
  limit?: number;
  level?: string;
  source?: string;
  task_id?: string;
  worker_id?: string;
  q?: string;
  /** Unix seconds, exclusive. */
  before?: number;
  after?: number;
}

export interface SeriesQuery {
  metric?: string;
  from_step?: number;
  to_step?: number;
  from_time?: number;
  to_time?: number;
  points?: number;
}

export interface Requests {
  status(signal?: AbortSignal): Promise<Status>;
  dashboard(signal?: AbortSignal): Promise<Dashboard>;
  runs(signal?: AbortSignal): Promise<RunInfo[]>;
  alerts(signal?: AbortSignal): Promise<Alert[]>;
  logs(query: LogQuery, signal?: AbortSignal): Promise<LogEntry[]>;
  shards(dataset: string, epoch: number | null, signal?: AbortSignal): Promise<Shard[]>;
  preview(dataset: string, worker: string | null, n: number, signal?: AbortSignal): Promise<Preview>;
  series(run: string, query: SeriesQuery, signal?: AbortSignal): Promise<RunSeries[]>;
  /** Points of series by their numbers in the stream; only asked for after a snapshot with an outline. */
  points(ids: readonly number[], points: number, signal?: AbortSignal): Promise<PointsAnswer>;
  /** Who the series of these runs are; only asked for runs that a snapshot left out. */
  outline(runs: readonly string[], signal?: AbortSignal): Promise<OutlineAnswer>;
  /** What was logged about checkpoints of a run, newest first. */
  checkpointRows(run: string, signal?: AbortSignal): Promise<CheckpointRow[]>;
  course(task: string, signal?: AbortSignal): Promise<Course>;
  createTask(task: CreateTask): Promise<{ task_id: string }>;
  stopTask(id: string): Promise<void>;
  /** The step it goes on from; null when it has no checkpoint. */
  resumeTask(id: string): Promise<{ from_step: number | null }>;
  registerDataset(dataset: { id: string; path: string; format: string; name?: string }): Promise<Dataset>;
  editRun(run: string, change: { name?: string; notes?: string }): Promise<void>;
  deleteRun(run: string): Promise<void>;
  pinCheckpoint(id: string, pinned: boolean): Promise<void>;
}

export interface DataSource {
  readonly kind: "live" | "demo";
  readonly requests: Requests;
  /** Starts the one stream; the returned function stops it. Never throws: trouble arrives as a link. */
  open(sink: Sink): () => void;
  /** The last minutes of the system's own numbers, where a source knows them. */
  pastMetrics?(): { time: number; metrics: SystemMetrics }[];
}
