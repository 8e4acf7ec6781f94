import { expect, test } from "vitest";
import { zoomAround } from "./gestures";

test("what is under the pointer stays there", () => {
  expect(zoomAround([0, 100], 0.25, 0.5, false)).toEqual([12.5, 62.5]);
  expect(zoomAround([0, 100], 0, 2, false)).toEqual([0, 200]);
  const [low, high] = zoomAround([1, 10_000], 0.5, 0.5, true);
  expect(low).toBeCloseTo(10);
  expect(high).toBeCloseTo(1000);
});
