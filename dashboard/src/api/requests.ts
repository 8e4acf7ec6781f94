/** What pages ask for beside the stream, typed by the server's own description of its routes. */
import { toQuery } from "./client";
import type {
  Answers,
  Bodies,
  ChangeRun,
  ChangeRuns,
  CreateTask,
  ForkTask,
  RegisterDataset,
  SaveDashboard,
  SetRule,
  SetTarget,
} from "./wire";

/** Carries one request; the path lies below /api. */
export type Send = (
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  headers?: Record<string, string>,
) => Promise<unknown>;

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
  rank?: number;
  from_step?: number;
  to_step?: number;
  from_time?: number;
  to_time?: number;
  points?: number;
  attempts?: "newest" | "superseded" | "all";
  /** Also what the runs measured that this one was forked from. */
  inherited?: boolean;
}

export interface FleetQuery {
  task_id?: string;
  worker_id?: string;
  rank?: number;
  status?: string;
  q?: string;
  offset?: number;
  limit?: number;
}

export interface HeatQuery {
  metric?: string;
  rows: number;
  first_rank?: number;
  last_rank?: number;
  picture?: string;
  version?: number;
}

export interface RunQuery {
  /** In the server's query language: docs/runs.md. */
  filter: string;
  sort: string;
  descending: boolean;
  limit: number;
}

export interface RunTableQuery extends RunQuery {
  column: readonly string[];
}

export interface MediaQuery {
  metric: string;
  kind: string;
  rank: number;
  from_step?: number;
  to_step?: number;
  limit?: number;
}

interface Details<R> {
  /** Takes the place of the route's {name}. */
  id?: string;
  query?: object;
  body?: R extends keyof Bodies ? Bodies[R] : never;
  signal?: AbortSignal | undefined;
  /** The version that the request replaces; null: there is none yet. */
  version?: number | null;
  /** Only if there is none of that name. */
  isNew?: boolean;
}

/** More squares than this nobody can read; the page says how many there are. */
const SHOWN_SHARDS = 2000;

export type Requests = ReturnType<typeof makeRequests>;

export function makeRequests(send: Send) {
  async function ask<R extends keyof Answers>(route: R, details: Details<R> = {}): Promise<Answers[R]> {
    const [method = "", template = ""] = route.split(" ");
    const path = template.replace(/\{\w+\}/, encodeURIComponent(details.id ?? ""));
    const headers = {
      ...(typeof details.version === "number" && { "If-Match": `"${details.version}"` }),
      ...(details.isNew && { "If-None-Match": "*" }),
    };
    const address = path + toQuery(details.query ?? {});
    return (await send(method, address, details.body, details.signal, headers)) as Answers[R];
  }

  return {
    status: (signal?: AbortSignal) => ask("GET /status", { signal }),
    /** Who this browser is to the server, and what it may do. */
    caller: (signal?: AbortSignal) => ask("GET /session", { signal }),
    dashboard: (signal?: AbortSignal) => ask("GET /dashboard", { query: { sparse: true }, signal }),
    fleet: (signal?: AbortSignal) => ask("GET /fleet", { signal }),
    /** Workers of a folded fleet, a page of them. */
    fleetWorkers: (query: FleetQuery, signal?: AbortSignal) => ask("GET /fleet/workers", { query, signal }),
    /** One metric over ranks and steps; what changed since the last answer when that is named. */
    heat: (id: string, query: HeatQuery, signal?: AbortSignal) => ask("GET /runs/{run_id}/heat", { id, query, signal }),
    runs: (signal?: AbortSignal) => ask("GET /runs", { signal }),
    findRuns: (query: RunQuery, signal?: AbortSignal) => ask("GET /runs", { query, signal }),
    runTable: (query: RunTableQuery, signal?: AbortSignal) => ask("GET /runs/table", { query, signal }),
    runSummary: (id: string, signal?: AbortSignal) => ask("GET /runs/{run_id}/summary", { id, signal }),
    /** Names under which a run logged what is no number. */
    media: (id: string, search: string, signal?: AbortSignal) =>
      ask("GET /runs/{run_id}/media", { id, query: { search }, signal }),
    mediaSteps: (id: string, query: MediaQuery, signal?: AbortSignal) =>
      ask("GET /runs/{run_id}/media/steps", { id, query, signal }),
    mediaEntries: (id: string, query: MediaQuery, signal?: AbortSignal) =>
      ask("GET /runs/{run_id}/media/entries", { id, query, signal }),
    dashboards: (signal?: AbortSignal) => ask("GET /dashboards", { signal }),
    savedDashboard: (id: string, signal?: AbortSignal) => ask("GET /dashboards/{dashboard_id}", { id, signal }),
    saveDashboard: (id: string, body: SaveDashboard, version: number | null) =>
      ask("PUT /dashboards/{dashboard_id}", { id, body, version }),
    deleteDashboard: (id: string, version: number | null) => ask("DELETE /dashboards/{dashboard_id}", { id, version }),
    alerts: (signal?: AbortSignal) => ask("GET /alerts", { signal }),
    alertRules: (signal?: AbortSignal) => ask("GET /alerts/rules", { signal }),
    setRule: (id: string, body: SetRule, isNew: boolean) => ask("PUT /alerts/rules/{name}", { id, body, isNew }),
    deleteRule: (id: string) => ask("DELETE /alerts/rules/{name}", { id }),
    setTarget: (id: string, body: SetTarget, isNew: boolean) => ask("PUT /alerts/targets/{name}", { id, body, isNew }),
    deleteTarget: (id: string) => ask("DELETE /alerts/targets/{name}", { id }),
    /** Sends one alert there now. */
    testTarget: (id: string) => ask("POST /alerts/targets/{name}/test", { id }),
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
    /** Metrics by name, of all runs. */
    metricNames: (q: string, limit: number, signal?: AbortSignal) =>
      ask("GET /series/names", { query: { q, limit }, signal }),
    /** Who the series of these runs are; only asked for runs that a snapshot left out. */
    outline: (runs: readonly string[], signal?: AbortSignal) =>
      ask("GET /outline", { query: { runs: runs.join(",") }, signal }),
    /** What was logged about checkpoints of a run, newest first. */
    checkpointRows: async (id: string, signal?: AbortSignal) =>
      (await ask("GET /checkpoints/{run_id}", { id, signal })).rows,
    course: (id: string, signal?: AbortSignal) => ask("GET /tasks/{task_id}/course", { id, signal }),
    /** Why a task stands as it does; `at` (Unix seconds) picks the interruption nearest to it. */
    why: (id: string, at: number | null, signal?: AbortSignal) =>
      ask("GET /tasks/{task_id}/why", { id, query: { at }, signal }),
    createTask: (body: CreateTask) => ask("POST /tasks", { body }),
    stopTask: (id: string) => ask("POST /tasks/{task_id}/stop", { id }),
    resumeTask: (id: string) => ask("POST /tasks/{task_id}/resume", { id }),
    forkTask: (id: string, body: ForkTask) => ask("POST /tasks/{task_id}/fork", { id, body }),
    registerDataset: (body: RegisterDataset) => ask("POST /datasets", { body }),
    editRun: (id: string, body: ChangeRun) => ask("PATCH /runs/{run_id}", { id, body }),
    editRuns: (body: ChangeRuns) => ask("PATCH /runs", { body }),
    deleteRun: (id: string) => ask("DELETE /runs/{run_id}", { id }),
    pinCheckpoint: (id: string, pinned: boolean) =>
      ask("POST /checkpoints/{checkpoint_id}/pin", { id, body: { pinned } }),
  };
}
