/** The live source: REST for requests, one event stream for what happens. */
import { ApiError, send, streamUrl } from "./client";
import { makeRequests } from "./requests";
import type { DataSource, Link, Sink } from "./source";
import { Stream } from "./stream";

const requests = makeRequests(send);

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
