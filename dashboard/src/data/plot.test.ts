import { expect, test } from "vitest";
import { buildPlot, metricsOf, type PlotOptions, type PlotSeries } from "./plot";

const OPTIONS: PlotOptions = {
  x: "step",
  drawn: ["loss"],
  xMetric: "",
  ranks: "mean",
  smoothing: 0,
  smoothingKind: "ema",
  logX: false,
  logY: false,
  labelOf: null,
  baseline: "",
  since: -Infinity,
  zoom: null,
  maxBuckets: 1000,
};

function series(
  run: string,
  rank: number,
  values: readonly (number | null)[],
  start = 1_000_000,
  metric = "loss",
): PlotSeries {
  return {
    head: { run_id: run, metric, rank, device: 0, host: "h", unit: "s" },
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

const of = (metric: string, run: string, values: readonly (number | null)[]) =>
  series(run, 0, values, 1_000_000, metric);

test("a formula is a line of each run that has all of its metrics", () => {
  const all = [of("train/loss", "a", [3, 2, null]), of("val/loss", "a", [1, 1, 1]), of("train/loss", "b", [9, 9, 9])];
  const drawn = ["=train/loss - val/loss"];
  expect(metricsOf(drawn)).toEqual(["train/loss", "val/loss"]);
  const { lines } = buildPlot(all, { ...OPTIONS, drawn });
  expect(lines.map((line) => [line.run, line.metric, line.y])).toEqual([["a", drawn[0], [2, 1, null]]]);
  expect(lines[0]?.bad).toEqual([0, 0, 1]);
  expect(buildPlot(all, { ...OPTIONS, drawn: ["=train/loss -"] }).lines).toEqual([]);
});

test("several metrics are lines over the same steps", () => {
  const all = [of("a", "r", [1, 2]), of("b", "r", [5, 6]), of("c", "r", [7, 8])];
  const { lines } = buildPlot(all, { ...OPTIONS, drawn: ["a", "b"] });
  expect(lines.map((line) => [line.metric, line.y])).toEqual([
    ["a", [1, 2]],
    ["b", [5, 6]],
  ]);
});

test("any metric can be the x axis: in the order of its values, NaN left out", () => {
  const all = [of("tokens", "r", [300, 100, null, 200]), of("loss", "r", [3, 1, 9, 2])];
  const plot = buildPlot(all, { ...OPTIONS, xMetric: "tokens" });
  expect(plot.x).toEqual([100, 200, 300]);
  expect(plot.lines.map((line) => [line.metric, line.y])).toEqual([["loss", [1, 2, 3]]]);
  expect(buildPlot(all, { ...OPTIONS, xMetric: "tokens", zoom: [150, 250] }).x).toEqual([200]);
  expect(buildPlot(all, { ...OPTIONS, xMetric: "gone" }).lines).toEqual([]);
});

test("many values of an x metric share buckets", () => {
  const many = Array.from({ length: 5000 }, (_, i) => i / 7);
  const plot = buildPlot([of("t", "r", many), of("loss", "r", many)], { ...OPTIONS, xMetric: "t", maxBuckets: 100 });
  expect(plot.x.length).toBeLessThanOrEqual(202);
  expect(plot.lines[0]?.y.at(-1)).toBeCloseTo(714, -1);
});

test("groups are one line each: mean, one standard deviation, and how many runs", () => {
  const all = [of("loss", "a", [1, 1]), of("loss", "b", [3, 5]), of("loss", "c", [7, 7])];
  const labelOf = (run: string) => (run === "c" ? "other" : "pair");
  const { lines } = buildPlot(all, { ...OPTIONS, labelOf, baseline: "c" });
  expect(lines.map((line) => [line.group?.label ?? line.run, line.group?.count, line.y])).toEqual([
    ["pair", 2, [2, 3]],
    ["other", 1, [7, 7]],
    ["c", undefined, [7, 7]],
  ]);
  expect([lines[0]?.min, lines[0]?.max]).toEqual([
    [1, 1],
    [3, 5],
  ]);
});

test("a log x axis begins above zero", () => {
  const zero = series("a", 0, [1, 2, 3]);
  const from0 = { ...zero, columns: { ...zero.columns, steps: [0, 1, 2] } };
  const plot = buildPlot([from0], { ...OPTIONS, logX: true });
  expect([plot.x, plot.lines[0]?.y]).toEqual([
    [1, 2],
    [2, 3],
  ]);
});

test("runs that cover the same steps share their buckets, however many; runs of different days are cut coarser", () => {
  const values = Array.from({ length: 400 }, (_, i) => i);
  const together = Array.from({ length: 100 }, (_, run) => series(`r${run}`, 0, values));
  expect(buildPlot(together, { ...OPTIONS, maxBuckets: 200 })).toMatchObject({ width: 2 });
  const days = Array.from({ length: 100 }, (_, run) => series(`r${run}`, 0, values, run * 86_400_000));
  const apart = buildPlot(days, { ...OPTIONS, x: "wall", maxBuckets: 200 });
  expect(apart.x.length).toBeLessThan(2 * 6 * 200);
  expect(apart.x.length).toBeGreaterThan(6 * 100);
});
