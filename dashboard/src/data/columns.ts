/**
 * The six columns of a series' points: pure changes in place. While every point stands for itself its extremes are its
 * value, and the three columns are one array: a page that is left open grows by a third less.
 */
import type { Nullable, SeriesColumns } from "@/api/wire";

export function newColumns(): SeriesColumns {
  const values: Nullable<number>[] = [];
  return { steps: [], times: [], values, min: values, max: values, bad: [] };
}

export function pushPoint(columns: SeriesColumns, step: number, time: number, value: Nullable<number>): void {
  columns.steps.push(step);
  columns.times.push(time);
  columns.values.push(value);
  if (columns.min !== columns.values) columns.min.push(value);
  if (columns.max !== columns.values) columns.max.push(value);
  columns.bad.push(value === null ? 1 : 0);
}

/** Halves the points; extremes and NaN counts stay exact. Steps that go back are a restart and are not folded over. */
export function foldColumns(columns: SeriesColumns): void {
  if (columns.min === columns.values) columns.min = [...columns.values];
  if (columns.max === columns.values) columns.max = [...columns.values];
  const { steps, times, values, min, max, bad } = columns;
  const count = steps.length;
  let out = 0;
  for (let i = 0; i < count; out += 1) {
    const next = i + 1;
    const j = next < count && (steps[next] ?? 0) >= (steps[i] ?? 0) ? next : i;
    const [a, b] = [values[i] ?? null, values[j] ?? null];
    steps[out] = steps[j] ?? 0;
    times[out] = times[j] ?? 0;
    values[out] = a === null ? b : b === null ? a : (a + b) / 2;
    min[out] = pick(Math.min, min[i] ?? null, min[j] ?? null);
    max[out] = pick(Math.max, max[i] ?? null, max[j] ?? null);
    bad[out] = i === j ? (bad[i] ?? 0) : (bad[i] ?? 0) + (bad[j] ?? 0);
    i = j + 1;
  }
  for (const column of [steps, times, values, min, max, bad]) column.length = out;
}

function pick(of: (a: number, b: number) => number, a: Nullable<number>, b: Nullable<number>): Nullable<number> {
  return a === null ? b : b === null ? a : of(a, b);
}
