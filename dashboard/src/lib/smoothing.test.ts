import fc from "fast-check";
import { expect, test } from "vitest";
import { SMOOTHING_KINDS, smooth } from "./smoothing";

const numbers = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 60 });
const steps = (count: number) => Array.from({ length: count }, (_, i) => i * 10);

test("nothing to smooth gives the values themselves", () => {
  expect(smooth([0, 1, 2], [3, null, 5], 0)).toEqual([3, null, 5]);
});

test("a constant stays a constant: no bias towards zero at the start", () => {
  for (const value of smooth(steps(50), new Array(50).fill(7), 0.95)) expect(value).toBeCloseTo(7, 9);
});

test("never leaves the range of what it saw", () => {
  fc.assert(
    fc.property(numbers, fc.double({ min: 0.01, max: 0.99, noNaN: true }), (values, amount) => {
      const [low, high] = [Math.min(...values), Math.max(...values)];
      for (const value of smooth(steps(values.length), values, amount)) {
        expect(value).toBeGreaterThanOrEqual(low - 1e-6 * Math.abs(low) - 1e-9);
        expect(value).toBeLessThanOrEqual(high + 1e-6 * Math.abs(high) + 1e-9);
      }
    }),
  );
});

test("NaN and holes stay where they are and do not move the average", () => {
  const plain = smooth([0, 1, 2, 3], [1, 2, 3, 4], 0.5);
  const holed = smooth([0, 1, 1.5, 2, 3], [1, 2, null, 3, 4], 0.5);
  expect(holed[2]).toBeNull();
  expect(smooth([0, 1], [1, undefined], 0.5)[1]).toBeUndefined();
  expect(holed.filter((value) => value !== null)).toHaveLength(plain.length);
});

test("a wide gap forgets more than a narrow one", () => {
  const near = smooth([0, 1, 2, 3], [0, 0, 0, 1], 0.9)[3] as number;
  const far = smooth([0, 1, 2, 300], [0, 0, 0, 1], 0.9)[3] as number;
  expect(far).toBeGreaterThan(near + 0.01);
});

test("on a log axis the logarithm is smoothed, and what has none becomes a gap", () => {
  expect(smooth([0, 1], [1, 100], 0.5, true)[1]).toBeLessThan(smooth([0, 1], [1, 100], 0.5)[1] as number);
  expect(smooth([0, 1], [1, -1], 0.5, true)[1]).toBeNull();
});

test.each(SMOOTHING_KINDS)("%s: a constant stays one, nothing leaves the range, one point stays itself", (kind) => {
  for (const value of smooth(steps(50), new Array(50).fill(7), 0.95, false, kind)) expect(value).toBeCloseTo(7, 9);
  expect(smooth([5], [3], 0.9, false, kind)).toEqual([3]);
  expect(smooth([], [], 0.9, false, kind)).toEqual([]);
  fc.assert(
    fc.property(numbers, fc.double({ min: 0.01, max: 0.99, noNaN: true }), (values, amount) => {
      const most = 1e-9 * Math.max(1, ...values.map(Math.abs));
      for (const value of smooth(steps(values.length), values, amount, false, kind)) {
        expect(value).toBeGreaterThanOrEqual(Math.min(...values) - most);
        expect(value).toBeLessThanOrEqual(Math.max(...values) + most);
      }
    }),
  );
});

test("running mean and Gaussian look both ways: a straight line stays where it is", () => {
  const line = steps(40);
  for (const kind of ["mean", "gauss"] as const) {
    for (const [i, value] of smooth(line, line, 0.8, false, kind).entries()) expect(value).toBeCloseTo(line[i] ?? 0, 6);
  }
  expect((smooth(line, line, 0.8)[39] as number) < 380).toBe(true);
});
