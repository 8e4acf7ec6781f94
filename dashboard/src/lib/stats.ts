/** What a column of runs tells about another: pure functions over plain numbers. */
import { groupBy } from "./group-by";

export function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** One standard deviation of these values themselves; 0 for one value. */
export function spread(values: readonly number[]): number {
  const middle = mean(values) ?? 0;
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)) ?? 0);
}

export function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

/** How much a column tells about the target, from 0 to 1, and which way; null where nobody can say. */
export interface Importance {
  column: string;
  share: number | null;
  /** +1: the target rises with it; -1: falls; 0: words have no direction. */
  sign: number;
  kind: "rank correlation" | "correlation ratio";
  /** Runs that have both values. */
  count: number;
}

/** Fewer runs than this lie on a line by chance. */
const FEWEST = 3;

/**
 * For numbers the rank correlation (Spearman): it sees any rise or fall, and learning rates need no logarithm. For words the
 * correlation ratio: the share of the target's variance that lies between them, as a root.
 */
export function importanceOf(column: string, values: readonly unknown[], target: readonly unknown[]): Importance {
  const pairs = values
    .map((value, i) => [value, target[i]] as const)
    .filter((pair): pair is [unknown, number] => isNumber(pair[1]) && pair[0] !== null && pair[0] !== undefined);
  const numeric = pairs.filter((pair): pair is [number, number] => isNumber(pair[0]));
  if (numeric.length === pairs.length) {
    const found = correlation(ranks(numeric.map(([x]) => x)), ranks(numeric.map(([, y]) => y)));
    const share = found === null ? null : Math.abs(found);
    return { column, share, sign: Math.sign(found ?? 0), kind: "rank correlation", count: numeric.length };
  }
  return { column, share: correlationRatio(pairs), sign: 0, kind: "correlation ratio", count: pairs.length };
}

/** Equal values share the mean of their places. */
export function ranks(values: readonly number[]): number[] {
  const order = values.map((_, i) => i).sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
  const out = new Array<number>(values.length);
  for (let from = 0; from < order.length; ) {
    let to = from;
    while (to + 1 < order.length && values[order[to + 1] ?? 0] === values[order[from] ?? 0]) to += 1;
    for (let i = from; i <= to; i += 1) out[order[i] ?? 0] = (from + to) / 2;
    from = to + 1;
  }
  return out;
}

function correlation(x: readonly number[], y: readonly number[]): number | null {
  if (x.length < FEWEST) return null;
  const [mx, my] = [mean(x) ?? 0, mean(y) ?? 0];
  let [xy, xx, yy] = [0, 0, 0];
  for (let i = 0; i < x.length; i += 1) {
    const [dx, dy] = [(x[i] ?? 0) - mx, (y[i] ?? 0) - my];
    xy += dx * dy;
    xx += dx * dx;
    yy += dy * dy;
  }
  return xx === 0 || yy === 0 ? null : xy / Math.sqrt(xx * yy);
}

function correlationRatio(pairs: readonly (readonly [unknown, number])[]): number | null {
  if (pairs.length < FEWEST) return null;
  const middle = mean(pairs.map(([, y]) => y)) ?? 0;
  const groups = groupBy(pairs, ([word]) => JSON.stringify(word));
  const total = pairs.reduce((sum, [, y]) => sum + (y - middle) ** 2, 0);
  if (total === 0 || groups.size < 2) return null;
  let between = 0;
  for (const group of groups.values()) {
    between += group.length * ((mean(group.map(([, y]) => y)) ?? 0) - middle) ** 2;
  }
  return Math.sqrt(between / total);
}
