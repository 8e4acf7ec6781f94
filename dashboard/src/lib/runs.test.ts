import { expect, test } from "vitest";
import type { RunInfo, Task } from "@/api/wire";
import { isRunning, leadOf, runStatus } from "./runs";

const RUN: RunInfo = { run_id: "r", start_time: 1, last_event_time: 2, latest_step: 3, is_active: true };
const task = (status: Task["status"]) => [{ id: "t", status } as Task];

test("its task knows best, then its own goodbye, then its silence", () => {
  expect(runStatus(RUN, [])).toBe("running");
  expect(runStatus({ ...RUN, is_active: false }, [])).toBe("finished");
  expect(runStatus({ ...RUN, status: "finished" }, [])).toBe("finished");
  expect(runStatus({ ...RUN, status: "failed" }, [])).toBe("failed");
  expect(runStatus({ ...RUN, status: "running" }, [])).toBe("running");
  expect(runStatus({ ...RUN, status: "finished", task_id: "t" }, task("recovering"))).toBe("recovering");
  expect(runStatus({ ...RUN, task_id: "t" }, task("stopped"))).toBe("stopped");
});

test("what has ended does not run, however fresh its last point", () => {
  expect(isRunning(RUN, [])).toBe(true);
  expect(isRunning({ ...RUN, status: "finished" }, [])).toBe(false);
  expect(isRunning({ ...RUN, task_id: "t" }, task("completed"))).toBe(false);
  expect(isRunning({ ...RUN, task_id: "t" }, task("running"))).toBe(true);
  expect(isRunning({ ...RUN, is_active: false }, [])).toBe(false);
  expect(isRunning({ ...RUN, is_active: false, task_id: "t" }, task("running"))).toBe(true);
});

test("the run of a working task leads, not the newest run", () => {
  const own = { ...RUN, run_id: "newer" };
  const ofTask = { ...RUN, run_id: "older", task_id: "t" };
  expect(leadOf([own, ofTask], task("running"))?.run_id).toBe("older");
  expect(leadOf([own, ofTask], task("recovering"))?.run_id).toBe("older");
  expect(leadOf([own, ofTask], task("completed"))?.run_id).toBe("newer");
  expect(leadOf([], [])).toBeNull();
});
