import { expect, test } from "vitest";
import { importanceOf, mean, ranks, spread } from "./stats";

test("mean and spread; nothing has no mean", () => {
  expect(mean([])).toBeNull();
  expect([mean([1, 3]), spread([1, 3]), spread([5])]).toEqual([2, 1, 0]);
});

test("equal values share their place", () => {
  expect(ranks([30, 10, 10, 20])).toEqual([3, 0.5, 0.5, 2]);
});

test("what rises with the target has rank correlation 1, whatever its scale", () => {
  const found = importanceOf("lr", [1e-5, 1e-3, 1e-4, 1], [1, 3, 2, 4]);
  expect(found).toMatchObject({ share: 1, sign: 1, kind: "rank correlation", count: 4 });
  expect(importanceOf("lr", [4, 3, 2, 1], [1, 2, 3, 4])).toMatchObject({ share: 1, sign: -1 });
});

test("words are held against the target by the variance between them", () => {
  const found = importanceOf("opt", ["a", "a", "b", "b"], [1, 1, 5, 5]);
  expect(found).toMatchObject({ share: 1, sign: 0, kind: "correlation ratio" });
  expect(importanceOf("opt", ["a", "b", "a", "b"], [1, 1, 5, 5]).share).toBeCloseTo(0);
});

test("nobody can say: too few runs, one value only, no target, NaN", () => {
  expect(importanceOf("x", [1, 2], [1, 2]).share).toBeNull();
  expect(importanceOf("x", [1, 1, 1], [1, 2, 3]).share).toBeNull();
  expect(importanceOf("x", ["a", "a", "a"], [1, 2, 3]).share).toBeNull();
  expect(importanceOf("x", [1, 2, 3, 4], [null, Number.NaN, undefined, "4"])).toMatchObject({ share: null, count: 0 });
  expect(importanceOf("x", [null, 2, 3, 4, 5], [1, 2, 3, 4, 5]).count).toBe(4);
});
