import { expect, test } from "vitest";
import type { Heat } from "@/api/wire";
import { describeWide, ranksText, WideHeat } from "./wide-heat";

function answer(steps: number[], changed: number[], more: Partial<Heat> = {}): Heat {
  const columns = changed.map((step) => ({ step, median: 1, top_rank: 7, top_ratio: 2, ratios: [100, 200] }));
  const rest = { run_id: "r", metric: "step_time", metrics: [], picture: "p", version: 1, num_ranks: 4 };
  return { ...rest, first_ranks: [0, 2], last_ranks: [1, 2], steps, columns, ...more };
}

test("answers hold what changed; what left the picture is forgotten", () => {
  const heat = new WideHeat();
  expect(heat.seen).toBeUndefined();
  expect(heat.take(answer([1, 2], [1, 2]))).toBe(true);
  expect(heat.take(answer([1, 2], []))).toBe(false);
  expect(heat.take(answer([2, 3], [3], { version: 2 }))).toBe(true);
  expect(heat.columns().map((column) => column.step)).toEqual([2, 3]);
  expect(heat.seen).toEqual({ picture: "p", version: 2 });
  expect(heat.take(answer([9], [9], { picture: "q", version: 2 }))).toBe(true);
  expect(heat.columns().map((column) => column.step)).toEqual([9]);
});

test("who stands out", () => {
  const { columns } = answer([1, 2, 3], [1, 2, 3]);
  expect(describeWide(columns)).toBe(
    "In 100% of the last 3 logged steps rank 7 was highest, 2.00× the median on average.",
  );
  expect(describeWide(columns.map((column) => ({ ...column, top_ratio: 1.01 })))).toBe("No rank stands out now.");
  expect(describeWide([])).toBe("No rank stands out now.");
  expect([0, 1].map((row) => ranksText(answer([], []), row))).toEqual(["ranks 0 to 1", "rank 2"]);
});
