/** The demo source: a real job's stream and answers, recorded by scripts/record_demo.py, played back as if it ran now. */
import { ApiError } from "./client";
import { makeRequests } from "./requests";
import type { DataSource, Sink } from "./source";
import type { Caller, LogEntry, MediaEntries, StreamEvent, StreamEventType } from "./wire";

/** Offsets are milliseconds since the recording began; data and answers are the server's own JSON. */
export interface Recording {
  started_ms: number;
  duration_ms: number;
  events: [offset: number, type: StreamEventType, data: string][];
  /** By path without its query; each answer holds until the next one. */
  answers: Record<string, [offset: number, body: string][]>;
}

const BACK_MS = 24 * 3600_000;
/** A recording is looked at: nothing in it can be changed. */
const CALLER: Caller = { who: "viewer", may: ["GET /api/datasets/{dataset_id}/preview"] };

export class DemoSource implements DataSource {
  readonly kind = "demo";
  readonly requests = makeRequests((method, path) => this.#answer(method, path));
  #began = Date.now();

  constructor(private readonly recording: Recording) {}

  open(sink: Sink): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    // The first event is a snapshot, which replaces everything.
    const again = () => {
      this.#began += this.recording.duration_ms;
      play(0);
    };
    const play = (at: number) => {
      const event = this.recording.events[at];
      if (event === undefined) {
        timer = setTimeout(again, Math.max(0, this.#began + this.recording.duration_ms - Date.now()));
        return;
      }
      const [offset, type, data] = event;
      const wait = this.#began + offset - Date.now();
      if (wait > 0) timer = setTimeout(() => play(at), wait);
      else {
        sink.event({ type, data: this.#parse(data) } as StreamEvent);
        play(at + 1);
      }
    };
    sink.link({ state: "live", detail: "Playing a recorded job.", retryAt: null });
    play(0);
    return () => clearTimeout(timer);
  }

  async #answer(method: string, address: string): Promise<unknown> {
    const [path = "", query = ""] = address.split("?");
    if (path === "/session") return CALLER;
    const recorded = this.recording.answers[path];
    if (method !== "GET" || recorded === undefined) {
      throw new ApiError(409, "demo", "A recording cannot do this.", "Switch to Live to act on a real cluster.");
    }
    const now = Date.now() - this.#began;
    const [, body = "null"] = recorded.findLast(([offset]) => offset <= now) ?? recorded[0] ?? [];
    const answer = this.#parse(body);
    const asked = new URLSearchParams(query);
    if (path === "/logs") return filterLogs(answer as LogEntry[], asked);
    return path.endsWith("/media/entries") ? filterEntries(answer as MediaEntries, asked) : answer;
  }

  /** A number that lies within the day before the recording's end is a time, in seconds or milliseconds: it moves to now. */
  #parse(text: string): unknown {
    const { started_ms, duration_ms } = this.recording;
    const end = started_ms + duration_ms;
    const moved = this.#began - started_ms;
    const isTime = (ms: number) => ms > end - BACK_MS && ms <= end;
    return JSON.parse(text, (_, value: unknown) => {
      if (typeof value !== "number") return value;
      if (isTime(value)) return value + moved;
      return isTime(value * 1000) ? value + Math.round(moved / 1000) : value;
    });
  }
}

/** As the server filters them; a recording has no lines before its own. */
function filterLogs(lines: LogEntry[], query: URLSearchParams): LogEntry[] {
  const wanted = (name: "level" | "task_id" | "worker_id", line: LogEntry) =>
    !query.has(name) || line[name] === query.get(name);
  const words = query.get("q")?.toLowerCase() ?? "";
  if (query.has("before")) return [];
  return lines.filter(
    (line) =>
      wanted("level", line) &&
      wanted("task_id", line) &&
      wanted("worker_id", line) &&
      line.message.toLowerCase().includes(words),
  );
}

/** A slider asks for one step at a time. */
function filterEntries(found: MediaEntries, query: URLSearchParams): MediaEntries {
  const from = Number(query.get("from_step") ?? Number.NEGATIVE_INFINITY);
  const to = Number(query.get("to_step") ?? Number.POSITIVE_INFINITY);
  return { ...found, entries: found.entries.filter(({ step }) => from <= step && step <= to) };
}

export async function openDemo(): Promise<DataSource> {
  const response = await fetch(`${import.meta.env.BASE_URL}demo.gz`);
  const text = new Response(response.body?.pipeThrough(new DecompressionStream("gzip"))).text();
  return new DemoSource(JSON.parse(await text) as Recording);
}
