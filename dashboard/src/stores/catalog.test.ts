// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { RUN } from "@/testing/records";
import { addRuns, mergeRuns, setRuns, useCatalog } from "./catalog";

const run = (run_id: string, start_time_ms: number, name: string | null = null) => ({
  ...RUN,
  run_id,
  start_time_ms,
  name,
});
const shown = () => useCatalog.getState().runs.map(({ run_id, name }) => [run_id, name]);

test("news of some runs leave the others as they are, and the newest run first", () => {
  setRuns([run("b", 1), run("a", 1), run("c", 2)]);
  expect(shown()).toEqual([
    ["c", null],
    ["a", null],
    ["b", null],
  ]);
  mergeRuns([run("a", 1, "named"), run("d", 3)], ["c"]);
  expect(shown()).toEqual([
    ["d", null],
    ["a", "named"],
    ["b", null],
  ]);
  const before = useCatalog.getState().runs;
  mergeRuns([], []);
  expect(useCatalog.getState().runs).toBe(before);
});

test("runs that were asked for stand beside those that were told, until all are here", () => {
  setRuns([run("b", 2, "as told")]);
  useCatalog.setState({ whole: false });
  addRuns([run("b", 2, "older"), run("a", 1)]);
  expect(shown()).toEqual([
    ["b", "as told"],
    ["a", null],
  ]);
  useCatalog.setState({ whole: true });
  addRuns([run("gone", 3)]);
  expect(shown()).toHaveLength(2);
});
