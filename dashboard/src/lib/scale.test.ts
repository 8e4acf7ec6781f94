import fc from "fast-check";
import { expect, test } from "vitest";
import { linearTicks, scaleOf } from "./scale";

test("ends lie on ends, the middle of a log range on its root", () => {
  expect([0, 5, 10].map(scaleOf([0, 10], 100, 0))).toEqual([100, 50, 0]);
  expect(scaleOf([1, 100], 0, 1, true)(10)).toBeCloseTo(0.5);
  expect(scaleOf([3, 3], 0, 1)(3)).toBe(0.5);
});

test("ticks are round, inside the range and not too many", () => {
  expect(linearTicks([0, 1], 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(linearTicks([5, 5], 5)).toEqual([]);
  fc.assert(
    fc.property(
      fc.double({ min: -1e9, max: 1e9, noNaN: true }),
      fc.double({ min: 1e-6, max: 1e9, noNaN: true }),
      (low, span) => {
        const ticks = linearTicks([low, low + span], 5);
        expect(ticks.length).toBeLessThanOrEqual(7);
      },
    ),
  );
});
