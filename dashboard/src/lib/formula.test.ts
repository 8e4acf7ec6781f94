import fc from "fast-check";
import { expect, test } from "vitest";
import { type Cell, evaluate, FormulaError, namesIn, parseFormula, problemOf } from "./formula";

const VALUES: Record<string, Cell> = { a: 6, b: 3, "train/loss": 2, 'odd "name" é': 5, nan: null, été: 7 };
const value = (text: string) => evaluate(parseFormula(text), (name) => VALUES[name]);

test.each([
  ["train/loss - b", -1],
  ["a / b", 2],
  ["1 - 2 - 3", -4],
  ["2 ^ 3 ^ 2", 512],
  ["-b ^ 2", -9],
  ["(a + b) * 2", 18],
  ["max(a, b) - min(a,b)", 3],
  ["sqrt(a + b)", 3],
  ["1e2 + .5", 100.5],
  ['"odd \\"name\\" é" * 2', 10],
  ["été", 7],
  ["a / 0", null],
  ["log(-1)", null],
  ["nan + 1", null],
  ["gone + 1", undefined],
  ["gone + nan", undefined],
] as [string, Cell][])("%s", (text, wanted) => {
  expect(value(text)).toBe(wanted);
});

test("names are found once each", () => {
  expect(namesIn(parseFormula('max(a, b) + a * "c d"'))).toEqual(["a", "b", "c d"]);
});

test.each([
  ["", 0],
  ["a +", 3],
  ["a b", 2],
  ["(a", 2],
  ["a $ b", 2],
  ["alert(1)", 0],
  ["constructor(a)", 0],
  ["min(a)", 5],
  ['"open', 0],
  ["a,b", 1],
])("what cannot be read says where: %s", (text, at) => {
  expect(() => parseFormula(text)).toThrow(FormulaError);
  try {
    parseFormula(text);
  } catch (error) {
    expect((error as FormulaError).at).toBe(at);
  }
});

test("a sentence for who typed it", () => {
  expect(problemOf("a - b")).toBeNull();
  expect(problemOf("1 + 2")).toBe("It names no metric.");
  expect(problemOf("a -")).toBe("At character 4: “the end” stands where a metric or a number is expected.");
  expect(problemOf("(".repeat(499))).toContain("nested too deeply");
  expect(problemOf("a".repeat(501))).toContain("longer than 500");
});

test("whatever is typed is read or refused, never anything else", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 60, unit: fc.constantFrom(...'ab1.e+-*/^()", \\é🚀') }), (text) => {
      try {
        evaluate(parseFormula(text), () => 1);
      } catch (error) {
        expect(error).toBeInstanceOf(FormulaError);
      }
    }),
  );
});
