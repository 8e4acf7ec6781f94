import { expect, test } from "vitest";
import { filterFor } from "./run-values";

test("runs are named as the server reads names, archived ones included", () => {
  expect(filterFor(["a", 'b"c\\'])).toBe('(archived:yes or archived:no) and (id = "a" or id = "b\\"c\\\\")');
  expect(filterFor([])).toContain('id = ""');
  expect(filterFor(Array.from({ length: 500 }, (_, i) => `run-${i}`))).toBe("archived:yes or archived:no");
});
