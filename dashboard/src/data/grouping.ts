/** Lines of many runs as one line per group: the mean, and one standard deviation around it. Pure; typed arrays, one pass per line. */
import { isAside, type Line } from "./line";

interface Sums {
  count: Float64Array;
  mean: Float64Array;
  /** Sum of squared distances from the mean (Welford): no cancellation where the mean is large and the spread small. */
  squares: Float64Array;
  bad: number[];
  runs: Set<string>;
  first: Line;
}

/** Superseded points are left out: a group is about what counts. Groups come in the order of their first run. */
export function groupLines(x: readonly number[], lines: readonly Line[], labelOf: (run: string) => string): Line[] {
  const groups = new Map<string, { label: string; sums: Sums }>();
  for (const line of lines) {
    if (isAside(line)) continue;
    const label = labelOf(line.run);
    const key = `${line.metric}\n${label}`;
    let found = groups.get(key);
    if (!found) {
      found = { label, sums: newSums(x.length, line) };
      groups.set(key, found);
    }
    add(found.sums, x, line);
  }
  return [...groups].map(([key, { label, sums }]) => toLine(key, label, sums));
}

function newSums(size: number, first: Line): Sums {
  return {
    count: new Float64Array(size),
    mean: new Float64Array(size),
    squares: new Float64Array(size),
    bad: new Array<number>(size).fill(0),
    runs: new Set(),
    first,
  };
}

/** A run counts from its first to its last point: between two of them it lies on the line that a chart would draw. */
function add(sums: Sums, x: readonly number[], line: Line): void {
  sums.runs.add(line.run);
  let before = -1;
  for (let i = 0; i < x.length; i += 1) {
    sums.bad[i] = (sums.bad[i] ?? 0) + (line.bad[i] ?? 0);
    const y = line.y[i];
    if (y === undefined) continue;
    if (y === null) {
      before = -1;
      continue;
    }
    if (before >= 0) between(sums, x, line, before, i);
    put(sums, i, y);
    before = i;
  }
}

function between(sums: Sums, x: readonly number[], line: Line, from: number, to: number): void {
  const [x0, x1] = [x[from] ?? 0, x[to] ?? 0];
  const [y0, y1] = [line.y[from] as number, line.y[to] as number];
  for (let i = from + 1; i < to; i += 1) put(sums, i, y0 + ((y1 - y0) * ((x[i] ?? 0) - x0)) / (x1 - x0));
}

function put({ count, mean, squares }: Sums, i: number, y: number): void {
  const n = (count[i] ?? 0) + 1;
  const off = y - (mean[i] ?? 0);
  count[i] = n;
  mean[i] = (mean[i] ?? 0) + off / n;
  squares[i] = (squares[i] ?? 0) + off * (y - (mean[i] ?? 0));
}

function toLine(key: string, label: string, sums: Sums): Line {
  const size = sums.count.length;
  const y: Line["y"] = new Array(size);
  const min: Line["min"] = new Array(size);
  const max: Line["max"] = new Array(size);
  for (let i = 0; i < size; i += 1) {
    const count = sums.count[i] ?? 0;
    if (count === 0) {
      if (sums.bad[i]) y[i] = null;
      continue;
    }
    const mean = sums.mean[i] ?? 0;
    const spread = Math.sqrt((sums.squares[i] ?? 0) / count);
    y[i] = mean;
    min[i] = mean - spread;
    max[i] = mean + spread;
  }
  const { metric, run } = sums.first;
  return {
    ...sums.first,
    key,
    metric,
    run,
    rank: null,
    group: { label, count: sums.runs.size },
    y,
    smooth: y,
    min,
    max,
    bad: sums.bad,
  };
}
