/** Exponential smoothing that survives decimation: the weight of the past decays with the distance in x. */

type Cell = number | null | undefined;

/** `amount` in [0, 1) is the share of the past kept per typical x step, as on TensorBoard's slider. */
export function smooth(x: readonly number[], y: readonly Cell[], amount: number, log = false): Cell[] {
  if (amount <= 0) return [...y];
  const spacing = typicalSpacing(x, y);
  const out: Cell[] = new Array(y.length);
  let sum = 0;
  let weight = 0;
  let last: number | null = null;
  for (let i = 0; i < y.length; i += 1) {
    const cell = y[i];
    if (cell === null || cell === undefined || !Number.isFinite(cell) || (log && cell <= 0)) {
      // Holes stay holes; a NaN neither moves the average nor resets it.
      out[i] = cell === undefined ? undefined : null;
      continue;
    }
    const at = x[i] ?? 0;
    const keep: number = last === null ? 0 : amount ** Math.max((at - last) / spacing, 0);
    const value = log ? Math.log(cell) : cell;
    // Dividing by the collected weight removes the bias towards the first value.
    sum = sum * keep + value * (1 - amount);
    weight = weight * keep + (1 - amount);
    last = at;
    out[i] = log ? Math.exp(sum / weight) : sum / weight;
  }
  return out;
}

/** Mean x distance between defined points; 1 when there are fewer than two. */
function typicalSpacing(x: readonly number[], y: readonly Cell[]): number {
  let first: number | null = null;
  let last = 0;
  let count = 0;
  for (let i = 0; i < y.length; i += 1) {
    if (y[i] === null || y[i] === undefined) continue;
    first ??= x[i] ?? 0;
    last = x[i] ?? 0;
    count += 1;
  }
  return first === null || count < 2 || last <= first ? 1 : (last - first) / (count - 1);
}
