import { expect, test } from "vitest";
import type { Line } from "@/data/line";
import { lineLooks } from "./look";

const line = (run: string, metric = "loss", more: Partial<Line> = {}): Line => ({
  ...{ key: `${run}${metric}`, run, metric, rank: null, attempt: null, group: null },
  ...{ y: [1], smooth: [1], min: [1], max: [1], bad: [0], ...more },
});

test("several metrics of one run differ by colour, of several runs by dash", () => {
  const alone = lineLooks([line("a"), line("a", "val")], "light");
  expect(new Set(alone.map((look) => look.color)).size).toBe(2);
  const both = lineLooks([line("a"), line("a", "val"), line("b"), line("b", "val")], "light");
  expect(both[0]?.color).toBe(both[1]?.color);
  expect(both[0]?.dash).not.toEqual(both[1]?.dash);
  expect(both[0]?.color).not.toBe(both[2]?.color);
});

test("the baseline is bold and has a colour that no run has; a group keeps its own", () => {
  const group = { label: "g", count: 2 };
  const [own, base, grouped] = lineLooks([line("a"), line("b"), line("b", "loss", { group })], "dark", "b");
  expect([own?.bold, base?.bold, grouped?.bold]).toEqual([false, true, false]);
  expect(base?.color).toBe("#f0f3f6");
  expect(grouped?.color).not.toBe(base?.color);
});
