/** The coordinator's own figures as the header and the overview name them. */
export type SystemKey = "checkpoint_throughput" | "coordinator_rps" | "barrier_latency_p99" | "shard_assignment_time";

export interface SystemFigure {
  key: SystemKey;
  label: string;
  /** For the header, on a phone too. */
  short: string;
  unit: string;
  empty: string;
}

export const SYSTEM_FIGURES: readonly SystemFigure[] = [
  {
    key: "checkpoint_throughput",
    label: "Checkpoint throughput",
    short: "Checkpoint",
    unit: "MB/s",
    empty: "no save measured yet",
  },
  {
    key: "coordinator_rps",
    label: "Coordinator requests",
    short: "Requests",
    unit: "/s",
    empty: "no request measured yet",
  },
  {
    key: "barrier_latency_p99",
    label: "Barrier latency p99",
    short: "Barrier p99",
    unit: "ms",
    empty: "no barrier measured yet",
  },
  {
    key: "shard_assignment_time",
    label: "Shard assignment",
    short: "Shards dealt",
    unit: "ms",
    empty: "no assignment measured yet",
  },
];

/** No more digits than a glance needs. */
export function roundFigure(value: number | null | undefined): number | null {
  if (value === null || value === undefined) return null;
  return value >= 100 ? Math.round(value) : Math.round(value * 10) / 10;
}
