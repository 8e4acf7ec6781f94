/** What pages ask for beside the stream, typed by the server's own description of its routes. */
import { toQuery } from "./client";
import type { Answers, Bodies, ChangeRun, ChangeRuns, CreateTask, RegisterDataset } from "./wire";

/** Carries one request; the path lies below /api. */
export type Send = (method: string, path: string, body?: unknown, signal?: AbortSignal) => Promise<unknown>;

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
  attempts?: "newest" | "superseded" | "all";
}

export interface RunTableQuery {
  /** In the server's query language: docs/runs.md. */
  filter: string;
  sort: string;
  descending: boolean;
  column: readonly string[];
  limit: number;
}

interface Details<R> {
  /** Takes the place of the route's {name}. */
  id?: string;
  query?: object;
  body?: R extends keyof Bodies ? Bodies[R] : never;
  signal?: AbortSignal | undefined;
}

/** More squares than this nobody can read; the page says how many there are. */
const SHOWN_SHARDS = 2000;

export type Requests = ReturnType<typeof makeRequests>;

export function makeRequests(send: Send) {
  async function ask<R extends keyof Answers>(route: R, details: Details<R> = {}): Promise<Answers[R]> {
    const [method = "", template = ""] = route.split(" ");
    const path = template.replace(/\{\w+\}/, encodeURIComponent(details.id ?? ""));
    return (await send(method, path + toQuery(details.query ?? {}), details.body, details.signal)) as Answers[R];
  }

  return {
    status: (signal?: AbortSignal) => ask("GET /status", { signal }),
    dashboard: (signal?: AbortSignal) => ask("GET /dashboard", { signal }),
    runs: (signal?: AbortSignal) => ask("GET /runs", { signal }),
    runTable: (query: RunTableQuery, signal?: AbortSignal) => ask("GET /runs/table", { query, signal }),
    runSummary: (id: string, signal?: AbortSignal) => ask("GET /runs/{run_id}/summary", { id, signal }),
    alerts: (signal?: AbortSignal) => ask("GET /alerts", { signal }),
    logs: (query: LogQuery, signal?: AbortSignal) => ask("GET /logs", { query, signal }),
    shards: (id: string, epoch: number | null, signal?: AbortSignal) =>
      ask("GET /datasets/{dataset_id}/shards", { id, query: { epoch, limit: SHOWN_SHARDS }, signal }),
    preview: (id: string, worker: string | null, n: number, signal?: AbortSignal) =>
      ask("GET /datasets/{dataset_id}/preview", { id, query: { worker_id: worker, n }, signal }),
    series: async (id: string, query: SeriesQuery, signal?: AbortSignal) =>
      (await ask("GET /metrics/{run_id}", { id, query, signal })).series,
    /** Points of series by their numbers in the stream; only asked for after a snapshot with an outline. */
    points: (ids: readonly number[], points: number, signal?: AbortSignal) =>
      ask("GET /series", { query: { ids: ids.join(","), points }, signal }),
    /** Who the series of these runs are; only asked for runs that a snapshot left out. */
    outline: (runs: readonly string[], signal?: AbortSignal) =>
      ask("GET /outline", { query: { runs: runs.join(",") }, signal }),
    /** What was logged about checkpoints of a run, newest first. */
    checkpointRows: async (id: string, signal?: AbortSignal) =>
      (await ask("GET /checkpoints/{run_id}", { id, signal })).rows,
    course: (id: string, signal?: AbortSignal) => ask("GET /tasks/{task_id}/course", { id, signal }),
    createTask: (body: CreateTask) => ask("POST /tasks", { body }),
    stopTask: (id: string) => ask("POST /tasks/{task_id}/stop", { id }),
    resumeTask: (id: string) => ask("POST /tasks/{task_id}/resume", { id }),
    registerDataset: (body: RegisterDataset) => ask("POST /datasets", { body }),
    editRun: (id: string, body: ChangeRun) => ask("PATCH /runs/{run_id}", { id, body }),
    editRuns: (body: ChangeRuns) => ask("PATCH /runs", { body }),
    deleteRun: (id: string) => ask("DELETE /runs/{run_id}", { id }),
    pinCheckpoint: (id: string, pinned: boolean) =>
      ask("POST /checkpoints/{checkpoint_id}/pin", { id, body: { pinned } }),
  };
}
