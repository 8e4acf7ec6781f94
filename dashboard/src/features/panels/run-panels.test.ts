// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { RUN } from "@/testing/records";
import { axisFor } from "./axis";
import { barsOf } from "./bar-panel";
import { reduceRows } from "./number-panel";
import { pathOf } from "./parallel-panel";
import type { RunRow } from "./use-run-rows";

const row = (name: string, loss: unknown, group = ""): RunRow => ({
  run: { ...RUN, run_id: name },
  name,
  group,
  color: "#000000",
  isBaseline: false,
  values: { loss },
});
const ROWS = [row("new", 3), row("nan", Number.NaN), row("none", null), row("word", "3"), row("old", 1)];

test("a figure is the newest, lowest, highest or mean number; what is none does not count", () => {
  const told = (["newest", "min", "max", "mean"] as const).map((how) => reduceRows(ROWS, "loss", how));
  expect(told.map((one) => [one?.value, one?.of])).toEqual([
    [3, "new"],
    [1, "old"],
    [3, "new"],
    [2, "mean of 2 runs"],
  ]);
  expect(reduceRows(ROWS, "gone", "mean")).toBeNull();
});

test("bars: the largest first, the mean of a group with its spread", () => {
  expect(barsOf(ROWS, "loss").map((bar) => [bar.name, bar.value, bar.around])).toEqual([
    ["new", 3, 0],
    ["old", 1, 0],
  ]);
  const grouped = [row("a", 1, "g"), row("b", 3, "g"), row("c", 9, "h")];
  expect(barsOf(grouped, "loss").map((bar) => [bar.name, bar.value, bar.around])).toEqual([
    ["h · 1 runs", 9, 0],
    ["g · 2 runs", 2, 1],
  ]);
});

test("a line through the axes lifts the pen where a value is missing", () => {
  const axes = [axisFor([1, 2]), axisFor([1, 2]), axisFor([1, 2])];
  const path = (a: unknown, b: unknown, c: unknown) =>
    pathOf(
      { values: { a, b, c } },
      ["a", "b", "c"],
      axes,
      (i) => i,
      (share) => share,
    ).replace(/[\d. ]/g, "");
  expect(path(1, 2, 1)).toBe("MLL");
  expect(path(1, null, 1)).toBe("MM");
  expect(path(null, null, null)).toBe("");
});
