/** From values to places on a picture. Pure. */

export type Scale = (value: number) => number;

export function scaleOf([low, high]: readonly [number, number], from: number, to: number, log = false): Scale {
  const at = log ? Math.log : (value: number) => value;
  const [first, last] = [at(low), at(high)];
  return (value) => (first === last ? (from + to) / 2 : from + ((at(value) - first) / (last - first)) * (to - from));
}

/** About `count` round values inside the range. */
export function linearTicks([low, high]: readonly [number, number], count: number): number[] {
  const rough = (high - low) / count;
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((part) => part * size >= rough) ?? 10) * size;
  const first = Math.ceil(low / step);
  // Multiplied, not added up: 0.1 + 0.2 is no tick that anybody wants to read.
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
}
