import { describe, expect, it } from "vitest";
import { RUN } from "@/testing/records";
import { defaultColumns, differenceText, nextSort, toRows } from "./run-rows";

const RUNS = [
  { ...RUN, run_id: "a", state: "finished" as const },
  { ...RUN, run_id: "b", name: "B", archived: true },
];

describe("toRows", () => {
  it("follows the server's order and leaves out what is gone", () => {
    const table = { total: 3, matched: 3, ids: ["b", "gone", "a"], columns: { lr: [1, 2, null] }, names: [] };
    const rows = toRows({ runs: RUNS, whole: true }, table, 9_000);
    expect(rows.map((row) => [row.name, row.values["lr"], row.seconds])).toEqual([
      ["B", 1, 8],
      ["a", null, 1],
    ]);
  });
  it("ends before the first run that is not here while there are more: the best one may be older than those", () => {
    const names = (...ids: string[]) => {
      const table = { total: 3, matched: 3, ids, columns: { lr: ids.map((_, place) => place) }, names: [] };
      return toRows({ runs: RUNS, whole: false }, table, 0).map((row) => [row.name, row.values["lr"]]);
    };
    expect(names("best", "b", "a")).toEqual([]);
    expect(names("b", "best", "a")).toEqual([["B", 0]]);
    expect(names("b", "a")).toEqual([
      ["B", 0],
      ["a", 1],
    ]);
  });
  it("shows what is not archived while there is no answer", () => {
    expect(toRows({ runs: RUNS, whole: true }, undefined, 0).map((row) => row.name)).toEqual(["a"]);
  });
});

describe("columns", () => {
  it("begin with the loss that there is", () => {
    expect(defaultColumns(["config.lr", "acc.min", "train/loss.last", "train/loss.min", "loss.min"])).toEqual([
      "loss.last",
      "loss.min",
    ]);
    expect(defaultColumns(["val/loss.min"])).toEqual(["val/loss.last", "val/loss.min"]);
    expect(defaultColumns(["acc.min"])).toEqual([]);
  });
  it("turn round with a second click", () => {
    expect(nextSort("-started", "name")).toBe("name");
    expect(nextSort("name", "name")).toBe("-name");
    expect(nextSort("-started", "started")).toBe("started");
    expect(nextSort("name", "loss.min")).toBe("-loss.min");
  });
});

describe("the difference from the baseline", () => {
  it("has a sign, and is left out where one of both is no number", () => {
    expect([differenceText(3, 1), differenceText(1, 3), differenceText(2, 2)]).toEqual(["+2", "−2", "±0"]);
    expect([differenceText(null, 1), differenceText("a", 1), differenceText(1, undefined)]).toEqual(["", "", ""]);
  });
});
