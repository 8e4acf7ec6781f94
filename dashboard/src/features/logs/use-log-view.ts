import { useEffect, useMemo, useState } from "react";
import { logRing } from "@/data/log-ring";
import { type LogFilter, LogView } from "./log-view";

/** Screens refresh five times a second at most, however fast lines come. */
const EVERY_MS = 200;

export function useLogView(filter: LogFilter, frozen: boolean): { view: LogView; version: number } {
  const { level, task, worker, search } = filter;
  const view = useMemo(() => new LogView(logRing, { level, task, worker, search }), [level, task, worker, search]);
  const [version, setVersion] = useState(0);
  useEffect(() => {
    if (frozen) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refresh = () => {
      timer = undefined;
      view.update();
      setVersion((old) => old + 1);
    };
    refresh();
    const stop = logRing.subscribe(() => {
      timer ??= setTimeout(refresh, EVERY_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [view, frozen]);
  return { view, version };
}
