import { expect, test } from "vitest";
import { groupLines } from "./grouping";
import type { Line } from "./line";

function line(run: string, y: Line["y"], attempt: number | null = null): Line {
  const bad = Array.from(y, (value) => (value === null ? 1 : 0));
  return {
    key: run,
    run,
    metric: "loss",
    rank: null,
    attempt,
    group: null,
    y,
    smooth: y,
    min: y as number[],
    max: y as number[],
    bad,
  };
}

const X = [0, 1, 2, 3, 4];
const one = () => "all";

test("a run counts between its points as it is drawn, and not before or after", () => {
  const [found] = groupLines(
    X,
    [line("a", [0, undefined, undefined, undefined, 4]), line("b", [undefined, 3, 3])],
    one,
  );
  expect(found?.y).toEqual([0, 2, 2.5, 3, 4]);
  expect(found?.group).toEqual({ label: "all", count: 2 });
});

test("a NaN is a gap of its run and no value of the group", () => {
  const [found] = groupLines(X, [line("a", [1, null, 1, 1, 1]), line("b", [3, 3, 3, null, 3])], one);
  expect(found?.y).toEqual([2, 3, 2, 1, 2]);
  expect(found?.bad).toEqual([0, 1, 0, 1, 0]);
  const [only] = groupLines(X, [line("a", [1, null, 1])], one);
  expect(only?.y[1]).toBeNull();
});

test("the spread is exact where the mean is large, and superseded points do not count", () => {
  const [found] = groupLines([0], [line("a", [1e9 + 1]), line("b", [1e9 - 1]), line("b", [0], 1)], one);
  expect([found?.min[0], found?.max[0]]).toEqual([1e9 - 1, 1e9 + 1]);
});

test("a hundred runs of a thousand points are grouped in one pass over them", () => {
  const runs = Array.from({ length: 100 }, (_, run) =>
    line(
      `r${run}`,
      Array.from({ length: 1000 }, (_, i) => i + run),
    ),
  );
  const x = Array.from({ length: 1000 }, (_, i) => i);
  const lines = groupLines(x, runs, (run) => String(Number(run.slice(1)) % 4));
  expect(lines.map((found) => found.group?.count)).toEqual([25, 25, 25, 25]);
  expect(lines[0]?.y[10]).toBe(10 + 48);
});
