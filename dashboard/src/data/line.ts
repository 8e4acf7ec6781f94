/** What a chart draws: lines over shared x values. */
import type { Row } from "@/lib/buckets";

export interface Line extends Row {
  key: string;
  run: string;
  /** What it measures: a metric, or a formula with its mark. */
  metric: string;
  /** Not null: the mean of so many runs; min and max lie one standard deviation away. */
  group: { label: string; count: number } | null;
  rank: number | null;
  /** Not null: superseded points of that attempt. */
  attempt: number | null;
  /** A run from which this one was forked, and which measured these points before. */
  origin?: string | null;
  /** What is drawn on top when smoothing is on; else the same array as y. */
  smooth: (number | null | undefined)[];
  /** By place: values that a log axis has no room for. There `y` is null, as it is for a NaN. */
  hidden?: ReadonlyMap<number, number>;
}

/** What was measured, whether or not the axis shows it; null for a NaN, undefined where there is no point. */
export function valueAt(line: Line, place: number): number | null | undefined {
  return line.hidden?.get(place) ?? line.y[place];
}

/** Drawn behind the others, and part of no mean: it was superseded, or measured before a fork. */
export function isAside(line: Line): boolean {
  return line.attempt !== null || (line.origin ?? null) !== null;
}

export interface Plot {
  /** Step, ms since start, or unix ms. */
  x: number[];
  lines: Line[];
  /** Bucket width; 1 (or one point per bucket) means that every point is drawn. */
  width: number;
  unit: string;
}
