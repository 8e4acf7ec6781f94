import { expect, test } from "vitest";
import type { Task } from "@/api/wire";
import { RUN } from "@/testing/records";
import { isRunning, leadOf, stateText } from "./runs";

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
