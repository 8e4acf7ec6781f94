import { expect, test } from "vitest";
import { columnTitle } from "./column-title";

test("titles are short", () => {
  expect(["config.model.width", "summary.best", "train/loss.min", "config.min"].map(columnTitle)).toEqual([
    "model.width",
    "best",
    "train/loss, min",
    "min",
  ]);
});
