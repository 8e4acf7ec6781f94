/** The stream that public/early.js opened before this code was here. Taken over once; whoever comes later opens an own. */
import type { StreamEventType } from "./wire";

type Take = (type: StreamEventType, message: MessageEvent<string>) => void;

interface Early {
  source: EventSource;
  kept: [StreamEventType, MessageEvent<string>][];
  take: Take | null;
}

declare global {
  interface Window {
    strataEarly?: Early | undefined;
  }
}

/** The open stream of this very address, or null. One of another address is closed. */
export function takeEarly(url: string, take: Take): EventSource | null {
  const early = window.strataEarly;
  if (!early) return null;
  window.strataEarly = undefined;
  const { source } = early;
  if (source.readyState === EventSource.CLOSED || source.url !== new URL(url, location.href).href) {
    source.close();
    return null;
  }
  // After the caller has its source: events must not come before its own handlers are in place.
  queueMicrotask(() => {
    for (const [type, message] of early.kept.splice(0)) take(type, message);
    early.take = take;
  });
  return source;
}
