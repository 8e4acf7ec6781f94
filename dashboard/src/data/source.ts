/** The source in use, for pages that ask for more than the stream tells. */
import { liveSource } from "@/api/live";
import type { Requests } from "@/api/requests";
import type { DataSource } from "@/api/source";

let current: DataSource = liveSource;

export function setSource(source: DataSource): void {
  current = source;
}

export function requests(): Requests {
  return current.requests;
}

/** Part of every query key, so that demo answers never show in live mode. */
export function sourceKind(): DataSource["kind"] {
  return current.kind;
}
