/** The one EventSource: resume by cursor, watchdog, jittered reconnect without end. Knows nothing of React or stores. */
import { isElsewhere, toQuery } from "./client";
import { Cursor } from "./cursor";
import { takeEarly } from "./early";
import type { Link, Sink } from "./source";
import type { StreamEvent, StreamEventType } from "./wire";

const EVENTS: readonly StreamEventType[] = ["snapshot", "delta", "runs_meta", "state", "log", "alert", "resync"];
/** runs_meta comes each 30 s even from an idle cluster; pings are invisible to EventSource. */
const SILENCE_MS = 75_000;
const RESYNC_MS = 2_000;
const HIDDEN_MS = 60_000;
const MIN_DELAY_MS = 1_000;
const MAX_DELAY_MS = 30_000;

/** Full jitter: a thousand tabs must not come back in step after a server restart. */
export function retryDelay(attempt: number, random: () => number = Math.random): number {
  const ceiling = Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** Math.min(attempt, 10));
  return MIN_DELAY_MS / 2 + random() * (ceiling - MIN_DELAY_MS / 2);
}

export interface StreamOptions {
  url: string;
  sink: Sink;
  /** Asked after a failure: does the server answer at all? Its sentence goes onto the pill. */
  diagnose: () => Promise<Pick<Link, "state" | "detail">>;
}

export class Stream {
  #source: EventSource | null = null;
  readonly #cursor = new Cursor();
  #attempt = 0;
  #opened = false;
  #lastEventAt = 0;
  #hiddenSince: number | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watchdog: ReturnType<typeof setInterval> | undefined;
  #stopped = false;

  constructor(private readonly options: StreamOptions) {}

  start(): void {
    document.addEventListener("visibilitychange", this.#visibility);
    this.#watchdog = setInterval(this.#check, 5_000);
    this.#connect();
  }

  stop(): void {
    this.#stopped = true;
    document.removeEventListener("visibilitychange", this.#visibility);
    clearInterval(this.#watchdog);
    this.#close();
  }

  #connect(): void {
    this.#close();
    if (this.#stopped) return;
    const { url, sink } = this.options;
    this.#opened = false;
    if (this.#attempt === 0) sink.link({ state: "connecting", detail: "Opening the live stream.", retryAt: null });
    const address = `${url}${toQuery({ sparse: true, cursor: this.#cursor.id })}`;
    const early = takeEarly(address, (type, message) => this.#source === early && this.#receive(type, message));
    const source = early ?? new EventSource(address, { withCredentials: isElsewhere });
    this.#source = source;
    this.#lastEventAt = Date.now();
    source.onopen = () => this.#live();
    source.onerror = () =>
      void this.#fail(this.#opened ? "The live stream broke." : "The live stream could not be opened.");
    if (early) {
      if (early.readyState === EventSource.OPEN) this.#live();
      return;
    }
    for (const type of EVENTS) {
      source.addEventListener(type, (message: MessageEvent<string>) => this.#receive(type, message));
    }
  }

  #live(): void {
    this.#attempt = 0;
    this.#opened = true;
    this.#lastEventAt = Date.now();
    this.options.sink.link({ state: "live", detail: "Receiving live events.", retryAt: null });
  }

  #receive(type: StreamEventType, message: MessageEvent<string>): void {
    this.#lastEventAt = Date.now();
    if (!this.#cursor.accept(type, message.lastEventId)) return;
    if (type === "resync") this.#awaitSnapshot();
    if (type === "snapshot") clearTimeout(this.#timer);
    this.options.sink.event({ type, data: JSON.parse(message.data), seq: this.#cursor.seq } as StreamEvent);
  }

  /** A server that says resync may follow with a snapshot by itself; one that does not is asked again. */
  #awaitSnapshot(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), RESYNC_MS);
  }

  async #fail(reason: string): Promise<void> {
    this.#close();
    const found = await this.options.diagnose();
    if (this.#stopped || this.#source) return;
    const delay = retryDelay(this.#attempt++);
    this.options.sink.link({ state: found.state, detail: `${reason} ${found.detail}`, retryAt: Date.now() + delay });
    this.#timer = setTimeout(() => this.#connect(), delay);
  }

  readonly #check = (): void => {
    const now = Date.now();
    if (this.#hiddenSince !== null && now - this.#hiddenSince > HIDDEN_MS) this.#close();
    else if (this.#source && now - this.#lastEventAt > SILENCE_MS) void this.#fail("The stream went silent.");
  };

  readonly #visibility = (): void => {
    if (document.hidden) this.#hiddenSince = Date.now();
    else {
      this.#hiddenSince = null;
      if (!this.#source) this.#connect();
    }
  };

  #close(): void {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }
}
