import { expect, test } from "vitest";
import { RUN } from "@/testing/records";
import { groupColumns, groupOf, NO_VALUE } from "./run-groups";

const run = (run_id: string, group: string | null, config: Record<string, unknown>) => ({
  ...RUN,
  run_id,
  group,
  config,
});
const RUNS = [
  run("a", "x", { lr: 0.1, model: { width: 64 }, seed: 1 }),
  run("b", "x", { lr: 0.1, model: { width: 32 }, seed: 2 }),
  run("c", null, { lr: 0.2, model: { width: 32 }, seed: 3, 'odd "key"': [1] }),
];

test("a run's group is its label or its config value; what has none is a group, too", () => {
  expect(RUNS.map((one) => groupOf(one, "group"))).toEqual(["x", "x", NO_VALUE]);
  expect(RUNS.map((one) => groupOf(one, "config.model.width"))).toEqual(["64", "32", "32"]);
  expect(groupOf(RUNS[2] ?? RUN, 'config.odd "key"')).toBe("[1]");
  expect(groupOf(RUN, "config.gone")).toBe(NO_VALUE);
});

test("only what makes groups is offered: not what all share, nor what each has alone", () => {
  expect(groupColumns(RUNS)).toEqual(["group", "config.lr", "config.model.width", 'config.odd "key"']);
  expect(groupColumns([])).toEqual([]);
});
