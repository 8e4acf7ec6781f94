/** Series, their points and what the stream says of them. Nothing here has behaviour. */
import type { Nullable, RunInfo } from "./wire";

export interface SeriesIdentity {
  run_id: string;
  metric: string;
  host: string;
  rank: number;
  device: number;
}

export interface SeriesHead extends SeriesIdentity {
  id: number;
  unit: string;
}

export interface SeriesColumns {
  steps: number[];
  /** unix ms */
  times: number[];
  /** null where the point was NaN or Inf */
  values: Nullable<number>[];
  min: Nullable<number>[];
  max: Nullable<number>[];
  /** NaN/Inf count behind each point */
  bad: number[];
}

export interface SnapshotSeries extends SeriesHead, SeriesColumns {
  total_points: number;
  nan_count: number;
}

/** Many series in columns: `run`, `metric`, `host` and `unit` are places in the lists of words; the newest point of each. */
export interface Outline {
  runs: string[];
  metrics: string[];
  hosts: string[];
  units: string[];
  id: number[];
  run: number[];
  metric: number[];
  host: number[];
  rank: number[];
  device: number[];
  unit: number[];
  total_points: number[];
  nan_count: number[];
  step: number[];
  time: number[];
  value: Nullable<number>[];
}

export interface Snapshot {
  epoch: string;
  runs: RunInfo[];
  series: SnapshotSeries[];
  /** In place of `series` when there are many: their points are asked for as they are shown. */
  outline?: Outline;
  /** Ended runs whose series the outline leaves out: asked for when somebody looks at the run. */
  omitted_runs?: string[];
  reduced: boolean;
}

/** The points of a series that the outline only named. Min, max and bad are left out where every point is itself. */
export interface SeriesPoints extends Partial<SeriesColumns> {
  id: number;
  total_points: number;
  nan_count: number;
  steps: number[];
  times: number[];
  values: Nullable<number>[];
}

export interface PointsAnswer {
  epoch: string;
  series: SeriesPoints[];
  /** Numbers that could not be read now, because the store is away. */
  missing?: number[];
}

export interface OutlineAnswer {
  epoch: string;
  outline: Outline;
}

export interface Delta {
  /** `total_points`: how many it had before, when it is new to this stream only. */
  new_series: (SeriesHead & { total_points?: number })[];
  points: [id: number, steps: number[], times: number[], values: Nullable<number>[]][];
}

export interface RunSeries extends SeriesIdentity, Omit<SeriesColumns, "bad"> {
  unit: string;
  bad?: number[];
  total_points: number;
  nan_count: number;
}
