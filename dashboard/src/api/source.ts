/** What the rest of the dashboard needs from a source of data. Two implementations: live.ts and demo.ts. */
import type { Requests } from "./requests";
import type { StreamEvent } from "./wire";

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

export interface DataSource {
  readonly kind: "live" | "demo";
  readonly requests: Requests;
  /** Starts the one stream; the returned function stops it. Never throws: trouble arrives as a link. */
  open(sink: Sink): () => void;
}
