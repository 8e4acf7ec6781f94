/** What the runs on show logged beside numbers, by name and kind. */
import { useMemo } from "react";
import { useResource } from "@/hooks/resource";
import { useShownRuns } from "@/hooks/runs";

/** Side by side more than this are too small to see. */
export const SIDE_BY_SIDE = 6;
const EVERY_MS = 5000;

export interface MediaKey {
  metric: string;
  ranks: number[];
  runs: string[];
}

export function useMediaKeys(kind: string, search: string): { keys: MediaKey[]; loaded: boolean; error: Error | null } {
  const runs = useShownRuns().slice(0, SIDE_BY_SIDE);
  const { data, error } = useResource(
    ["panel-media", search, ...runs],
    (ask, signal) => Promise.all(runs.map((run) => ask.media(run, search, signal))),
    { everyMs: EVERY_MS },
  );
  const keys = useMemo(() => {
    const found = new Map<string, MediaKey>();
    for (const { run_id, keys: own } of data ?? []) {
      for (const key of own.filter((one) => one.kind === kind)) {
        const one = found.get(key.metric) ?? { metric: key.metric, ranks: [], runs: [] };
        one.runs.push(run_id);
        one.ranks = [...new Set([...one.ranks, ...key.ranks])].sort((a, b) => a - b);
        found.set(key.metric, one);
      }
    }
    return [...found.values()];
  }, [data, kind]);
  return { keys, loaded: data !== undefined, error };
}
