/** Noise that is a pure function of its arguments: history, live points and a zoom's detail agree for ever. */

export function unit(seed: number, a: number, b = 0): number {
  let h =
    Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^
    Math.imul(a + 0x7f4a7c15, 0xc2b2ae35) ^
    Math.imul(b + 0x165667b1, 0x27d4eb2f);
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
  return ((h ^ (h >>> 15)) >>> 0) / 2 ** 32;
}

/** Roughly normal, mean 0, deviation 1. */
export function normal(seed: number, a: number, b = 0): number {
  return (unit(seed, a, b) + unit(seed + 1, a, b) + unit(seed + 2, a, b) - 1.5) * 2;
}

/** Slow wander between −1 and 1, smooth over `period`. */
export function drift(seed: number, at: number, period: number): number {
  const cell = Math.floor(at / period);
  const t = at / period - cell;
  const ease = t * t * (3 - 2 * t);
  const a = unit(seed, cell) * 2 - 1;
  const b = unit(seed, cell + 1) * 2 - 1;
  return a + (b - a) * ease;
}
