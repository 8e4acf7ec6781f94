/**
 * The six columns of a series' points: pure changes in place. While every point stands for itself its extremes are its
 * value, and the three columns are one.
 */
import type { Nullable } from "@/api/wire";
import { Column } from "./column";

export interface PointColumns {
  steps: Column;
  times: Column;
  values: Column<Nullable<number>>;
  min: Column<Nullable<number>>;
  max: Column<Nullable<number>>;
  bad: Column;
}

/** As they come from the server; without `min`, `max` and `bad` every point stands for itself. */
export interface PointArrays {
  steps: readonly number[];
  times: readonly number[];
  values: readonly Nullable<number>[];
  min: readonly Nullable<number>[] | null;
  max: readonly Nullable<number>[] | null;
  bad: readonly number[] | null;
}

export function newColumns(): PointColumns {
  return toColumns({ steps: [], times: [], values: [], min: null, max: null, bad: null });
}

export function toColumns({ steps, times, values, min, max, bad }: PointArrays): PointColumns {
  const own = new Column(values);
  return {
    steps: new Column(steps),
    times: new Column(times),
    values: own,
    min: min === null ? own : new Column(min),
    max: max === null ? own : new Column(max),
    bad: new Column(bad ?? values.map((value) => (value === null ? 1 : 0))),
  };
}

export function pushPoint(columns: PointColumns, step: number, time: number, value: Nullable<number>): void {
  columns.steps.push(step);
  columns.times.push(time);
  columns.values.push(value);
  if (columns.min !== columns.values) columns.min.push(value);
  if (columns.max !== columns.values) columns.max.push(value);
  columns.bad.push(value === null ? 1 : 0);
}

/** Halves the points; extremes and NaN counts stay exact. Steps that go back are a restart and are not folded over. */
export function foldColumns(columns: PointColumns): void {
  if (columns.min === columns.values) columns.min = new Column(columns.values);
  if (columns.max === columns.values) columns.max = new Column(columns.values);
  const { steps, times, values, min, max, bad } = columns;
  const count = steps.length;
  let out = 0;
  for (let i = 0; i < count; out += 1) {
    const next = i + 1;
    const j = next < count && (steps.at(next) ?? 0) >= (steps.at(i) ?? 0) ? next : i;
    const [a, b] = [values.at(i) ?? null, values.at(j) ?? null];
    steps.set(out, steps.at(j) ?? 0);
    times.set(out, times.at(j) ?? 0);
    values.set(out, a === null ? b : b === null ? a : (a + b) / 2);
    min.set(out, pick(Math.min, min.at(i) ?? null, min.at(j) ?? null));
    max.set(out, pick(Math.max, max.at(i) ?? null, max.at(j) ?? null));
    bad.set(out, i === j ? (bad.at(i) ?? 0) : (bad.at(i) ?? 0) + (bad.at(j) ?? 0));
    i = j + 1;
  }
  for (const column of [steps, times, values, min, max, bad]) column.truncate(out);
}

function pick(of: (a: number, b: number) => number, a: Nullable<number>, b: Nullable<number>): Nullable<number> {
  return a === null ? b : b === null ? a : of(a, b);
}
