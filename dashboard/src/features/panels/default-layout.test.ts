import { expect, test } from "vitest";
import { defaultLayout } from "./default-layout";
import { panelsOf } from "./layout";

test("figures, a scatter and what explains the loss, then a chart per metric; pairs share one", () => {
  const metrics = ["train/loss", "val/loss", "acc", "sys.cpu"];
  const layout = defaultLayout(metrics, ["config.lr", "config.width", "train/loss.min"]);
  expect(layout.sections.map((section) => section.title)).toEqual(["At a glance", "Train and validation", "general"]);
  expect(panelsOf(layout).map((panel) => panel.kind)).toEqual([
    "number",
    "number",
    "number",
    "scatter",
    "parallel",
    "line",
    "line",
  ]);
  const lines = panelsOf(layout).flatMap((panel) => (panel.kind === "line" ? [[...panel.metrics].sort()] : []));
  expect(lines).toEqual([["train/loss", "val/loss"], ["acc"]]);
  expect(new Set(panelsOf(layout).map((panel) => panel.id)).size).toBe(7);
});

test("nothing logged makes nothing; ten thousand names make a bounded one", () => {
  expect(defaultLayout([], ["config.lr"]).sections).toEqual([]);
  const many = Array.from({ length: 10_000 }, (_, i) => `part${i % 50}/m${i}`);
  expect(panelsOf(defaultLayout(many, [])).length).toBeLessThanOrEqual(48);
});
