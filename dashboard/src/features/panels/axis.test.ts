import { expect, test } from "vitest";
import { axisFor } from "./axis";

test("numbers lie by their size, what is unknown nowhere", () => {
  const axis = axisFor([1, 2, 3, null, undefined]);
  const places = [1, 2, 3].map((value) => axis.place(value) as number);
  expect(places[0]).toBeLessThan(places[1] as number);
  expect(places[1]).toBeCloseTo(0.5);
  expect([null, undefined, Number.NaN, "NaN", "x"].map((value) => axis.place(value))).toEqual([
    null,
    null,
    null,
    null,
    null,
  ]);
  expect(axis.ticks.every(({ at }) => at >= 0 && at <= 1)).toBe(true);
});

test("a log axis has no place for zero; one value lies in the middle", () => {
  const axis = axisFor([0, 1e-5, 1e-3], true);
  expect(axis.place(0)).toBeNull();
  expect(axis.place(1e-4)).toBeCloseTo(0.5);
  expect(axisFor([7]).place(7)).toBeCloseTo(0.5);
  expect(axisFor([]).ticks).toEqual([]);
});

test("words, lists and mixtures lie by their names", () => {
  const axis = axisFor(["sgd", "adam", true, 5, [1]]);
  expect(axis.ticks.map(({ label }) => label)).toEqual(["[1]", "5", "adam", "sgd", "true"]);
  expect(axis.place("sgd")).toBeCloseTo(0.7);
  expect(axis.place("gone")).toBeNull();
});
