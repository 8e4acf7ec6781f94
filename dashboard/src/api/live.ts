/** The live source: REST for requests, one event stream for what happens. */
import { ApiError, call, get, streamUrl, toQuery } from "./client";
import type { Course } from "./course";
import type { Preview, Shard } from "./shards";
import type { DataSource, Link, Requests, Sink } from "./source";
import { Stream } from "./stream";
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
} from "./wire";

const id = encodeURIComponent;
/** More squares than this nobody can read; the page says how many there are. */
const SHOWN_SHARDS = 2000;

/** Lists may arrive bare or wrapped under their own name; both are in use by clients of the spec. */
function list<T>(answer: T[] | Record<string, T[]>, key: string): T[] {
  return Array.isArray(answer) ? answer : (answer[key] ?? []);
}

async function getList<T>(path: string, key: string, signal?: AbortSignal): Promise<T[]> {
  return list(await get<T[] | Record<string, T[]>>(path, signal), key);
}

const requests: Requests = {
  status: (signal) => get<Status>("/status", signal),
  dashboard: (signal) => get<Dashboard>("/dashboard", signal),
  runs: (signal) => getList<RunInfo>("/runs", "runs", signal),
  alerts: (signal) => getList<Alert>("/alerts", "alerts", signal),
  logs: (query, signal) => getList<LogEntry>(`/logs${toQuery(query)}`, "logs", signal),
  shards: (dataset, epoch, signal) =>
    getList<Shard>(`/datasets/${id(dataset)}/shards${toQuery({ epoch, limit: SHOWN_SHARDS })}`, "shards", signal),
  preview: (dataset, worker, n, signal) =>
    get<Preview>(`/datasets/${id(dataset)}/preview${toQuery({ worker_id: worker, n })}`, signal),
  series: (run, query, signal) => getList<RunSeries>(`/metrics/${id(run)}${toQuery(query)}`, "series", signal),
  points: (ids, points, signal) => get<PointsAnswer>(`/series?ids=${ids.join(",")}&points=${points}`, signal),
  outline: (runs, signal) => get<OutlineAnswer>(`/outline${toQuery({ runs: runs.join(",") })}`, signal),
  checkpointRows: (run, signal) => getList<CheckpointRow>(`/checkpoints/${id(run)}`, "rows", signal),
  course: (task, signal) => get<Course>(`/tasks/${id(task)}/course`, signal),
  createTask: (task) => call("POST", "/tasks", task),
  stopTask: (task) => call("POST", `/tasks/${id(task)}/stop`),
  resumeTask: (task) => call("POST", `/tasks/${id(task)}/resume`),
  registerDataset: (dataset) => call<Dataset>("POST", "/datasets", dataset),
  editRun: (run, change) => call("PATCH", `/runs/${id(run)}`, change),
  deleteRun: (run) => call("DELETE", `/runs/${id(run)}`),
  pinCheckpoint: (checkpoint, pinned) => call("POST", `/checkpoints/${id(checkpoint)}/pin`, { pinned }),
};

async function diagnose(): Promise<Pick<Link, "state" | "detail">> {
  try {
    await requests.status();
    return { state: "connecting", detail: "The server answers, but its event stream does not." };
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      return { state: "disconnected", detail: "The server wants a token: set it under Settings." };
    }
    if (error instanceof ApiError && error.status > 0) {
      return { state: "disconnected", detail: `${error.message} (HTTP ${error.status}).` };
    }
    return { state: "disconnected", detail: "The server does not answer. Is `strata up` running?" };
  }
}

export const liveSource: DataSource = {
  kind: "live",
  requests,
  open(sink: Sink) {
    const stream = new Stream({ url: streamUrl, sink, diagnose });
    stream.start();
    return () => stream.stop();
  },
};
