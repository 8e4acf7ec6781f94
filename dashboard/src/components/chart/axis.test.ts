import fc from "fast-check";
import { expect, test } from "vitest";
import type { Plot } from "@/data/line";
import { formatX, logSplits, xRange, xTicks, yRange, yTicks } from "./axis";

test("ticks of a log axis: inside the range, ascending, never too many", () => {
  fc.assert(
    fc.property(
      fc.double({ min: -30, max: 20, noNaN: true }),
      fc.double({ min: 0.01, max: 20, noNaN: true }),
      (low, span) => {
        const [min, max] = [10 ** low, 10 ** (low + span)];
        const splits = logSplits(min, max);
        expect(splits.length).toBeLessThanOrEqual(24);
        for (let i = 0; i < splits.length; i += 1) {
          expect(splits[i]).toBeGreaterThanOrEqual(min);
          expect(splits[i]).toBeLessThanOrEqual(max);
          if (i > 0) expect(splits[i]).toBeGreaterThan(splits[i - 1] as number);
        }
      },
    ),
  );
  expect(logSplits(0, 1)).toEqual([]);
  expect(logSplits(0.8, 12)).toEqual([1, 2, 5, 10]);
});

test("neighbouring labels are never the same", () => {
  expect(yTicks([9000, 9025, 9050])).toEqual(["9,000", "9,025", "9,050"]);
  expect(yTicks([0.0002731, 0.0002732])).toEqual(["2.731e−4", "2.732e−4"]);
  expect(yTicks([0, 2.5, 5])).toEqual(["0", "2.5", "5"]);
  expect(yTicks([200_000, 400_000])).toEqual(["200k", "400k"]);
  expect(yTicks([null, 1])).toEqual(["", "1"]);
});

const plot = (values: number[]): Plot => ({
  x: values.map((_, i) => i),
  width: 1,
  unit: "",
  lines: [
    {
      key: "a",
      run: "a",
      metric: "m",
      group: null,
      rank: null,
      attempt: null,
      origin: null,
      y: values,
      smooth: values,
      min: values,
      max: values,
      bad: values.map(() => 0),
    },
  ],
});

test("spikes are never cut off, zero stays the floor of what is never negative", () => {
  const [low, high] = yRange(plot([0.1, 0.2, 9]), [0, 2], false);
  expect(low).toBe(0);
  expect(high).toBeGreaterThan(9);
  expect(yRange(plot([5, 5]), [0, 1], false)).toEqual([4.5, 5.5]);
  expect(yRange(plot([0.02, 0.019999999999999997]), [0, 1], false)[1]).toBeCloseTo(0.022);
  expect(yRange(plot([]), [0, 1], true)).toEqual([0.1, 1]);
});

test("a zoom is the range; one point gets room around it", () => {
  expect(xRange(plot([1, 2, 3]), [0.5, 1.5])).toEqual([0.5, 1.5]);
  expect(xRange(plot([1]), null)).toEqual([-1, 1]);
});

test("who asks for it gets an axis without the outliers", () => {
  const values = Array.from({ length: 100 }, (_, i) => (i === 50 ? 1e9 : 1 + i / 100));
  expect(yRange(plot(values), [0, 99], false, true)[1]).toBeLessThan(3);
  expect(yRange(plot([1, 2, 50]), [0, 2], false, true)[1]).toBeGreaterThan(50);
  expect(yRange(plot([]), [0, 1], false, true)).toEqual([0, 1]);
});

test("a log x axis has no place for zero, whatever an address asks for", () => {
  expect(xRange(plot([1, 2, 3]), [-5, 100], true)[0]).toBeLessThanOrEqual(10);
  for (const zoom of [null, [-5, 100], [-9, -3]] as const) {
    const [from, to] = xRange({ ...plot([1, 2]), x: [1, 10] }, zoom, true);
    expect(from).toBeGreaterThan(0);
    expect(to).toBeGreaterThan(from);
  }
  expect(xRange(plot([]), null, true)).toEqual([1, 10]);
});

test("the axis of a metric names it", () => {
  expect(formatX({ x: "step", xMetric: "tokens" }, 1500)).toBe("tokens 1,500");
  expect(formatX({ x: "step", xMetric: "" }, 1500)).toBe("step 1,500");
  expect(xTicks({ x: "wall", xMetric: "epoch" }, [0, 0.5, 1])).toEqual(["0", "0.5", "1"]);
});
