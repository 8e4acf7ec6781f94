// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { Barrier, Checkpoint } from "@/api/wire";
import { barriersNear, goodCheckpoint, locate } from "./evidence";

const saved = (step: number, change: Partial<Checkpoint> = {}): Checkpoint => ({
  id: `c${step}`,
  step,
  epoch: 0,
  size: 1,
  path: "/ckpt",
  created_at: step,
  created_at_ms: step * 1000,
  worker_id: "w0",
  status: "completed",
  task_id: "t",
  duration_s: null,
  throughput: null,
  verified: null,
  verified_at: null,
  verified_at_ms: null,
  pinned: null,
  reason: null,
  ...change,
});

test("an alert that knows only its moment is put at the step that was trained then", () => {
  const series = (metric: string, steps: number[]) => ({
    metric,
    rank: 0,
    unit: "",
    steps,
    times: [1000, 2000, 3000],
    values: [1, 1, 1],
  });
  const all = [series("sys.cpu", [1, 2, 3]), series("loss", [10, 20, 30]), series("lr", [])];
  const at = (step: number | null, time: number | null, metric: string | null = null) =>
    locate({ metric, step, time }, all);
  expect(at(null, 2100)).toEqual({ step: 20, time: 2100 });
  expect(at(30, null)).toEqual({ step: 30, time: 3000 });
  expect(at(null, 2100, "sys.cpu")).toEqual({ step: 2, time: 2100 });
  expect(at(7, 9)).toEqual({ step: 7, time: 9 });
  expect(at(null, null)).toEqual({ step: null, time: null });
  expect(locate({ metric: null, step: null, time: 5 }, [])).toEqual({ step: null, time: 5 });
});

test("the last good checkpoint is of the same task, and was there at that moment", () => {
  const all = [
    saved(10),
    saved(20, { status: "removed" }),
    saved(30, { status: "failed" }),
    saved(33, { verified: false }),
    saved(40),
    saved(15, { task_id: "other" }),
  ];
  const at = (step: number | null, time: number | null) => goodCheckpoint(all, "t", { step, time })?.step ?? null;
  expect(at(35, 35_000)).toBe(20);
  expect(at(null, 35_000)).toBe(20);
  expect(at(19, null)).toBe(10);
  expect(at(null, null)).toBe(40);
  expect(at(5, 5000)).toBeNull();
  // A task that went back passes steps again: what was saved later does not count.
  expect(goodCheckpoint([saved(10), saved(40, { created_at_ms: 90_000 })], "t", { step: 50, time: 50_000 })?.step).toBe(
    10,
  );
  expect(goodCheckpoint(all, null, { step: 35, time: null })).toBeNull();
});

test("barriers are of the same task, near in time or at the step", () => {
  const barrier = (id: string, task_id: string | null, created_at: number, step: number): Barrier => ({
    id,
    name: id,
    arrived: 4,
    total: 4,
    status: "complete",
    created_at,
    created_at_ms: created_at * 1000,
    wait_ms: null,
    missing: [],
    reason: null,
    step,
    task_id,
  });
  const all = [barrier("near", "t", 100, 1), barrier("far", "t", 900, 7), barrier("plain", null, 100, 1)];
  const names = (task: string | null, step: number | null) =>
    barriersNear(all, task, { step, time: 110_000 }).map((one) => one.id);
  expect(names("t", null)).toEqual(["near"]);
  expect(names("t", 7)).toEqual(["near", "far"]);
  expect(names(null, null)).toEqual(["plain"]);
});
