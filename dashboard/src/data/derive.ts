/** Lines that are computed from others: formulas, and metrics over another metric instead of steps. Pure. */
import { evaluate, type Formula, namesIn } from "@/lib/formula";
import type { Line } from "./line";

/** One line for each run (rank, attempt) that has every metric of the formula; a point where all of them have one. */
export function formulaLines(lines: readonly Line[], name: string, formula: Formula): Line[] {
  const names = namesIn(formula);
  const owners = new Map<string, Map<string, Line>>();
  for (const line of lines) {
    if (!names.includes(line.metric)) continue;
    const own = owners.get(ownerOf(line)) ?? new Map<string, Line>();
    owners.set(ownerOf(line), own.set(line.metric, line));
  }
  return [...owners.values()].flatMap((own) => {
    const [first] = own.values();
    if (!first || own.size < names.length) return [];
    // Over `bad`, which has no holes: `y` has one wherever a run has no point, and map would pass over it.
    const y = first.bad.map((_, i) => evaluate(formula, (metric) => own.get(metric)?.y[i]));
    const bad = first.bad.map((_, i) => (y[i] === null ? 1 : 0));
    const none: undefined[] = new Array(first.bad.length);
    return [{ ...first, key: `${name}\n${ownerOf(first)}`, metric: name, y, smooth: y, min: none, max: none, bad }];
  });
}

export interface Over {
  x: number[];
  lines: Line[];
}

/** The lines over the values that `metric` had at the same steps, in ascending order of those values. */
export function overMetric(
  lines: readonly Line[],
  metric: string,
  zoom: readonly [number, number] | null,
  most: number,
): Over {
  const axes = new Map(lines.filter((line) => line.metric === metric).map((line) => [ownerOf(line), line]));
  const drawn = lines.filter((line) => line.metric !== metric && axes.has(ownerOf(line)));
  const pairs = drawn.map((line) => pairsOf(axes.get(ownerOf(line)) as Line, line, zoom));
  const width = widthFor(pairs, most);
  const place = (value: number) => (width === 0 ? value : Math.floor(value / width) * width);
  const x = Array.from(Float64Array.from(new Set(pairs.flatMap((one) => one.x.map(place)))).sort());
  const slots = new Map(x.map((value, i) => [value, i]));
  return {
    x,
    lines: drawn.map((line, i) => laid(line, pairs[i] as Pairs, (value) => slots.get(place(value)) ?? 0, x.length)),
  };
}

interface Pairs {
  x: number[];
  y: (number | null)[];
}

function pairsOf(axis: Line, line: Line, zoom: readonly [number, number] | null): Pairs {
  const out: Pairs = { x: [], y: [] };
  for (let i = 0; i < line.bad.length; i += 1) {
    const [x, y] = [axis.y[i], line.y[i]];
    if (typeof x !== "number" || y === undefined || (zoom && (x < zoom[0] || x > zoom[1]))) continue;
    out.x.push(x);
    out.y.push(y);
  }
  return out;
}

/** 0 while there are few enough values to draw each one where it is. */
function widthFor(pairs: readonly Pairs[], most: number): number {
  const distinct = new Set(pairs.flatMap((one) => one.x));
  if (distinct.size <= 2 * most) return 0;
  let [low, high] = [Infinity, -Infinity];
  for (const value of distinct) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return (high - low) / most;
}

function laid(line: Line, pairs: Pairs, slotOf: (x: number) => number, size: number): Line {
  const y: Line["y"] = new Array(size);
  const min: Line["min"] = new Array(size);
  const max: Line["max"] = new Array(size);
  const bad = new Array<number>(size).fill(0);
  const counts = new Float64Array(size);
  pairs.x.forEach((x, i) => {
    const [slot, value] = [slotOf(x), pairs.y[i] ?? null];
    if (value === null) {
      bad[slot] = (bad[slot] ?? 0) + 1;
      if (y[slot] === undefined) y[slot] = null;
      return;
    }
    const count = (counts[slot] ?? 0) + 1;
    counts[slot] = count;
    y[slot] = (y[slot] ?? 0) + (value - (y[slot] ?? 0)) / count;
    min[slot] = Math.min(min[slot] ?? Infinity, value);
    max[slot] = Math.max(max[slot] ?? -Infinity, value);
  });
  return { ...line, y, smooth: y, min, max, bad };
}

function ownerOf(line: Line): string {
  return `${line.run}\n${line.rank}\n${line.attempt}\n${line.origin ?? ""}`;
}
