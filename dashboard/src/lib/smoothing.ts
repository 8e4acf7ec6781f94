/** Smoothing that survives decimation: what counts is the distance in x, in units of a line's typical step. */

export type Cell = number | null | undefined;

export const SMOOTHING_KINDS = ["ema", "mean", "gauss"] as const;
export type SmoothingKind = (typeof SMOOTHING_KINDS)[number];

/**
 * `amount` in [0, 1) is, for `ema`, the share of the past kept per typical x step, as on TensorBoard's slider. The running mean and
 * the Gaussian look both ways and are as wide as that average is: 2 / (1 - amount) - 1 steps.
 */
export function smooth(
  x: readonly number[],
  y: readonly Cell[],
  amount: number,
  log = false,
  kind: SmoothingKind = "ema",
): Cell[] {
  if (amount <= 0) return [...y];
  const known: number[] = [];
  for (let i = 0; i < y.length; i += 1) {
    const cell = y[i];
    if (typeof cell === "number" && Number.isFinite(cell) && !(log && cell <= 0)) known.push(i);
  }
  const at = Float64Array.from(known, (i) => x[i] ?? 0);
  const values = Float64Array.from(known, (i) => (log ? Math.log(y[i] as number) : (y[i] as number)));
  const smoothed = SMOOTHERS[kind](at, values, amount, typicalSpacing(at));
  // Holes stay holes; a NaN neither moves the average nor resets it.
  const out: Cell[] = y.map((cell) => (cell === undefined ? undefined : null));
  known.forEach((i, k) => {
    const value = smoothed[k] as number;
    out[i] = log ? Math.exp(value) : value;
  });
  return out;
}

type Smoother = (x: Float64Array, values: Float64Array, amount: number, spacing: number) => Float64Array;

const SMOOTHERS: Record<SmoothingKind, Smoother> = {
  ema: exponential,
  mean: (x, values, amount, spacing) => runningMean(x, values, (widthOf(amount) * spacing) / 2),
  gauss: (x, values, amount, spacing) => {
    // Three running means of a third of the variance each are a Gaussian within a few percent, at a cost per point that is constant.
    const half = (Math.sqrt(widthOf(amount) ** 2 / 3) * spacing) / 2;
    return runningMean(x, runningMean(x, runningMean(x, values, half), half), half);
  },
};

function widthOf(amount: number): number {
  return 2 / (1 - amount) - 1;
}

function exponential(x: Float64Array, values: Float64Array, amount: number, spacing: number): Float64Array {
  const out = new Float64Array(values.length);
  let sum = 0;
  let weight = 0;
  for (let i = 0; i < values.length; i += 1) {
    const keep = i === 0 ? 0 : amount ** Math.max(((x[i] ?? 0) - (x[i - 1] ?? 0)) / spacing, 0);
    // Dividing by the collected weight removes the bias towards the first value.
    sum = sum * keep + (values[i] ?? 0) * (1 - amount);
    weight = weight * keep + (1 - amount);
    out[i] = sum / weight;
  }
  return out;
}

/** The mean of what lies within `half` on both sides, or of as much of it as there is on both: an end does not pull the line. */
function runningMean(x: Float64Array, values: Float64Array, half: number): Float64Array {
  const count = values.length;
  const out = new Float64Array(count);
  const [first, last] = [x[0] ?? 0, x[count - 1] ?? 0];
  const sums = new Float64Array(count + 1);
  for (let i = 0; i < count; i += 1) sums[i + 1] = (sums[i] ?? 0) + (values[i] ?? 0);
  let low = 0;
  let high = 0;
  for (let i = 0; i < count; i += 1) {
    const at = x[i] ?? 0;
    const reach = Math.min(half, at - first, last - at) + 1e-9 * half;
    // Near the end the window narrows, so its lower edge may only move up and its upper edge only up as well.
    while (low < i && (x[low] ?? 0) < at - reach) low += 1;
    high = Math.max(high, i);
    while (high + 1 < count && (x[high + 1] ?? 0) <= at + reach) high += 1;
    out[i] = ((sums[high + 1] ?? 0) - (sums[low] ?? 0)) / (high + 1 - low);
  }
  return out;
}

/** Mean x distance between points; 1 when there are fewer than two. */
function typicalSpacing(x: Float64Array): number {
  const span = (x[x.length - 1] ?? 0) - (x[0] ?? 0);
  return x.length < 2 || span <= 0 ? 1 : span / (x.length - 1);
}
