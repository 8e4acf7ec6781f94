/** Checkpoints of the runs on show as rows of one table: Strata's own, and what others logged about theirs. */
import type { Checkpoint, CheckpointRow, RunInfo } from "@/api/wire";
import { formatUnit } from "@/lib/format";
import { unitOf } from "@/lib/metric-tabs";

export interface Row {
  key: string;
  run: RunInfo;
  step: number;
  status: string;
  size: number | null;
  seconds: number | null;
  /** MB/s */
  rate: number | null;
  created: number | null;
  /** Where it lies, or what its writer said about it. */
  detail: string;
}

export function ownRow(one: Checkpoint, run: RunInfo): Row {
  return {
    key: one.id,
    run,
    step: one.step,
    status: one.status,
    size: one.size,
    seconds: one.duration_s ?? null,
    rate: one.throughput ?? null,
    created: one.created_at_ms,
    detail: one.path,
  };
}

/** The value is the metric's own; size, time and path only where a tag is named so. */
export function loggedRow(one: CheckpointRow, run: RunInfo, place: number): Row {
  const { text, unit } = formatUnit(one.value, unitOf(one.metric, one.unit));
  const words = Object.entries(one.tags).map(
    ([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return {
    key: `${run.run_id} ${place}`,
    run,
    step: one.step,
    status: typeof one.tags["status"] === "string" ? one.tags["status"] : "logged",
    size: numeric(one.tags["size_bytes"] ?? one.tags["size"]),
    seconds: numeric(one.tags["duration_s"]),
    rate: null,
    created: one.event_time_ms,
    detail: [`${one.metric} ${text}${unit && ` ${unit}`}`, ...words].join(" · "),
  };
}

function numeric(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
