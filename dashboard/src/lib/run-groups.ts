/** Which group a run belongs to, and by what runs can be grouped. Pure. */
import type { RunInfo } from "@/api/wire";
import { asText, flattenConfig } from "./flat-config";

const LABELS = ["group", "project", "job_type", "state"] as const;
const CONFIG = "config.";
/** Runs without a value are a group of their own, and not left out. */
export const NO_VALUE = "none";

const flattened = new WeakMap<object, Map<string, unknown>>();

/** Once per record: charts ask for every run at every draw. */
function configOf(run: RunInfo): Map<string, unknown> {
  let found = flattened.get(run);
  if (!found) {
    found = flattenConfig(run.config ?? {});
    flattened.set(run, found);
  }
  return found;
}

export function groupOf(run: RunInfo, column: string): string {
  const label = LABELS.find((one) => one === column);
  const value = label ? run[label] : configOf(run).get(column.replace(CONFIG, ""));
  return value === null || value === undefined || value === "" ? NO_VALUE : asText(value);
}

/** Labels that tell these runs apart, then config values that do; a value that each run has alone makes no groups. */
export function groupColumns(runs: readonly RunInfo[]): string[] {
  const keys = new Set(runs.flatMap((run) => [...configOf(run).keys()].map((key) => CONFIG + key)));
  return [...LABELS, ...[...keys].sort()].filter((column) => {
    const count = new Set(runs.map((run) => groupOf(run, column))).size;
    return count > 1 && (count < runs.length || runs.length <= 2);
  });
}
