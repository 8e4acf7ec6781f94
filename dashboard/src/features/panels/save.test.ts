// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { newId, readFile } from "./save";

test("an id can be read in an address, whatever the name is", () => {
  const ids = ["My Sweep: lr", "Größe 🚀", "日本語", ""].map((name) => newId(name, () => "x1"));
  expect(ids).toEqual(["my-sweep-lr-x1", "gro-e-x1", "dashboard-x1", "dashboard-x1"]);
  expect(newId("a")).not.toBe(newId("a"));
});

test("a broken file is refused with its place", () => {
  expect(() => readFile('{\n  "name": "a",\n  "layout": }')).toThrow(/no JSON: .*line 3\)/);
  expect(() => readFile("[]")).toThrow(/has no layout/);
  expect(() => readFile("null")).toThrow(/has no layout/);
  expect(readFile('{"layout": {}}')).toEqual({ name: "Imported", project: "", layout: {} });
});
