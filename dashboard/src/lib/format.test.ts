import fc from "fast-check";
import { expect, test } from "vitest";
import {
  formatAge,
  formatBytes,
  formatCompact,
  formatCount,
  formatDuration,
  formatPercent,
  formatUnit,
  formatValue,
} from "./format";

test.each([
  [null, "–"],
  [undefined, "–"],
  [Number.NaN, "NaN"],
  [Infinity, "Inf"],
  [-Infinity, "−Inf"],
  [0, "0"],
  [2.13349, "2.133"],
  [0.5, "0.5"],
  [-3.25, "−3.25"],
  [1299.4, "1,299"],
  [484574, "484,574"],
  [0.00075, "7.5e-4"],
  [2.1e9, "2.1e9"],
])("formatValue(%s) = %s", (value, text) => expect(formatValue(value)).toBe(text));

test.each([
  [0.074, "74 ms"],
  [4.2, "4.2 s"],
  [59.4, "59 s"],
  [188, "3m 08s"],
  [7500, "2h 05m"],
  [360_000, "4d 4h"],
  [null, "–"],
  [-1, "–"],
])("formatDuration(%s) = %s", (value, text) => expect(formatDuration(value)).toBe(text));

test.each([
  [7.84e9, "7.84 GB"],
  [999, "999 B"],
  [61_100_000_000, "61.1 GB"],
  [null, "–"],
])("formatBytes(%s) = %s", (value, text) => expect(formatBytes(value)).toBe(text));

test("sizes and counts in short", () => {
  expect(formatCompact(1_281_167)).toBe("1.28M");
  expect(formatCompact(950)).toBe("950");
  expect(formatCount(1_281_167.4)).toBe("1,281,167");
  expect(formatPercent(15.56, 1)).toBe("15.6%");
  expect(formatUnit(2.1e9, "B/s")).toEqual({ text: "2.10", unit: "GB/s" });
  expect(formatUnit(3.5, "ms")).toEqual({ text: "3.5", unit: "ms" });
});

test("ages: the future of a clock that is ahead reads as now", () => {
  expect(formatAge(1_000, 500)).toBe("now");
  expect(formatAge(0, 12_000)).toBe("12 s ago");
  expect(formatAge(0, 7_200_000)).toBe("2 h ago");
  expect(formatAge(null, 5)).toBe("–");
});

test("no number is ever shown as an empty text", () => {
  fc.assert(
    fc.property(fc.double(), (value) => {
      expect(formatValue(value)).not.toBe("");
    }),
  );
});
