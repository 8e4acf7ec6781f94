import { expect, test } from "vitest";
import type { RunInfo, Task } from "@/api/wire";
import { isRunning, leadOf, stateText } from "./runs";

const RUN: RunInfo = {
  run_id: "r",
  start_time: 1,
  last_event_time: 2,
  latest_step: 3,
  is_active: true,
  state: "running",
};
const task = (status: Task["status"]) => [{ id: "t", status } as Task];

test("a run stands as the observatory says", () => {
  expect(isRunning(RUN)).toBe(true);
  for (const state of ["finished", "failed", "killed", "lost"] as const)
    expect(isRunning({ ...RUN, state })).toBe(false);
  expect(stateText(RUN)).toBe("running");
  expect(stateText({ ...RUN, state: "failed", reason: "ValueError: no" })).toBe("failed: ValueError: no");
});

test("the run of a working task leads, not the newest run", () => {
  const own = { ...RUN, run_id: "newer" };
  const ofTask = { ...RUN, run_id: "older", task_id: "t" };
  expect(leadOf([own, ofTask], task("running"))?.run_id).toBe("older");
  expect(leadOf([own, ofTask], task("recovering"))?.run_id).toBe("older");
  expect(leadOf([own, { ...ofTask, state: "finished" }], task("completed"))?.run_id).toBe("newer");
  expect(leadOf([], [])).toBeNull();
});
