import { expect, test } from "vitest";
import { buildPlot, type PlotOptions, type PlotSeries } from "./plot";

const OPTIONS: PlotOptions = {
  x: "step",
  ranks: "mean",
  smoothing: 0,
  logY: false,
  since: -Infinity,
  zoom: null,
  maxBuckets: 1000,
};

function series(run: string, rank: number, values: readonly (number | null)[], start = 1_000_000): PlotSeries {
  return {
    head: { run_id: run, rank, device: 0, host: "h", unit: "s" },
    start,
    columns: {
      steps: values.map((_, i) => i + 1),
      times: values.map((_, i) => start + (i + 1) * 1000 + rank * 7),
      values,
      min: values,
      max: values,
      bad: values.map((value) => (value === null ? 1 : 0)),
    },
  };
}

test("few points are drawn as they are", () => {
  const plot = buildPlot([series("a", 0, [3, 2, 1])], OPTIONS);
  expect(plot.x).toEqual([1, 2, 3]);
  expect(plot.lines[0]?.y).toEqual([3, 2, 1]);
  expect(plot.unit).toBe("s");
});

test("ranks become one line with a band, or one line each", () => {
  const ranks = [series("a", 0, [1, 1]), series("a", 1, [3, 5])];
  const [mean] = buildPlot(ranks, OPTIONS).lines;
  expect(mean?.y).toEqual([2, 3]);
  expect([mean?.min, mean?.max]).toEqual([
    [1, 1],
    [3, 5],
  ]);
  expect(buildPlot(ranks, { ...OPTIONS, ranks: "all" }).lines.map((line) => line.rank)).toEqual([0, 1]);
});

test("the ranks of a run stand in their order, whichever was heard of first", () => {
  const heard = [series("b", 2, [1]), series("a", 1, [1]), series("b", 0, [1]), series("a", 0, [1])];
  const lines = buildPlot(heard, { ...OPTIONS, ranks: "all" }).lines.map((line) => `${line.run}${line.rank}`);
  expect(lines).toEqual(["b0", "b2", "a0", "a1"]);
});

test("ranks that log a few milliseconds apart are still averaged on a time axis", () => {
  const ranks = Array.from({ length: 4 }, (_, rank) => series("a", rank, new Array(50).fill(rank)));
  const plot = buildPlot(ranks, { ...OPTIONS, x: "wall" });
  expect(plot.x.length).toBeLessThanOrEqual(51);
  expect(plot.lines[0]?.y.every((y) => y === 1.5)).toBe(true);
});

test("relative time begins with the run", () => {
  const plot = buildPlot([series("a", 0, [1, 2]), series("b", 0, [1, 2], 9_000_000)], { ...OPTIONS, x: "rel" });
  expect(Math.max(...plot.x)).toBeLessThanOrEqual(2_000);
});

test("many points fit the pixels and keep their extremes", () => {
  const values = Array.from({ length: 10_000 }, (_, i) => (i === 5_000 ? 99 : 1));
  const plot = buildPlot([series("a", 0, values)], { ...OPTIONS, maxBuckets: 200 });
  expect(plot.x.length).toBeLessThanOrEqual(201);
  expect(Math.max(...(plot.lines[0]?.max ?? []).map((value) => value ?? 0))).toBe(99);
});

test("the timeline leaves old points out, the zoom the rest of the axis", () => {
  const one = series(
    "a",
    0,
    Array.from({ length: 100 }, (_, i) => i),
  );
  expect(buildPlot([one], { ...OPTIONS, since: 1_000_000 + 91_000 }).x).toEqual([
    91, 92, 93, 94, 95, 96, 97, 98, 99, 100,
  ]);
  const zoomed = buildPlot([one], { ...OPTIONS, zoom: [10, 12] });
  expect(zoomed.x).toEqual([9, 10, 11, 12, 13]);
});

test("a log axis has no place for zero", () => {
  expect(buildPlot([series("a", 0, [0, -1, 10])], { ...OPTIONS, logY: true }).lines[0]?.y).toEqual([null, null, 10]);
});

test("what an earlier attempt measured is a line of its own, also in the mean", () => {
  const older = { ...series("a", 0, [9, 9]), attempt: 1 };
  const ranks = [series("a", 0, [1, 1]), series("a", 1, [3, 5]), older];
  const { lines } = buildPlot(ranks, OPTIONS);
  expect(lines.map((line) => [line.attempt, line.y])).toEqual([
    [null, [2, 3]],
    [1, [9, 9]],
  ]);
});
