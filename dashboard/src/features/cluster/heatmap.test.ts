import { expect, test } from "vitest";
import { Series } from "@/data/series";
import { buildHeat, describeHeat, median } from "./heatmap";

function rank(number: number, value: number): Series {
  const series = new Series({
    id: number,
    run_id: "r",
    metric: "step_time",
    host: "",
    rank: number,
    device: 0,
    unit: "s",
  });
  const steps = Array.from({ length: 100 }, (_, i) => i + 1);
  series.append(
    steps,
    steps,
    steps.map(() => value),
  );
  return series;
}

test("cells are ratios to the median of their column", () => {
  const heat = buildHeat([rank(2, 4), rank(0, 1), rank(1, 2)], 20, 100);
  expect(heat.ranks).toEqual([0, 1, 2]);
  expect(heat.steps.length).toBe(20);
  expect(heat.ratio.map((row) => row[0])).toEqual([0.5, 1, 2]);
  expect(describeHeat(heat)).toBe(
    "Over the last 15 steps rank 2 was highest 100% of the time, 2.00× the median on average.",
  );
});

test("nobody stands out when all are alike, or alone", () => {
  expect(describeHeat(buildHeat([rank(0, 1), rank(1, 1.01)], 10, 100))).toBe("No rank stands out now.");
  expect(describeHeat(buildHeat([rank(0, 1)], 10, 100))).toBe("No rank stands out now.");
});

test("columns are never finer than the points", () => {
  const sparse = new Series({ id: 1, run_id: "r", metric: "m", host: "", rank: 0, device: 0, unit: "" });
  sparse.append([10, 20, 30, 40, 41, 42, 43], [1, 2, 3, 4, 5, 6, 7], [1, 1, 1, 1, 1, 1, 1]);
  const heat = buildHeat([sparse], 100, 100);
  expect(heat.value[0]?.every((value) => value !== null)).toBe(true);
  expect(heat.steps.length).toBe(5);
});

test("median", () => {
  expect(median([3, null, 1, 2])).toBe(2);
  expect(median([1, 2])).toBe(1.5);
  expect(median([])).toBeNull();
});
