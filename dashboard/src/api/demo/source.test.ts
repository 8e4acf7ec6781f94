import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Link } from "../source";
import type { StreamEvent } from "../wire";
import { DemoSource } from "./source";

const NOW = 1_800_000_000_000;

beforeEach(() => {
  vi.useFakeTimers();
  vi.setSystemTime(NOW);
});
afterEach(() => {
  vi.useRealTimers();
});

function watch(seconds: number) {
  const events: StreamEvent[] = [];
  const links: Link[] = [];
  const source = new DemoSource(NOW);
  const stop = source.open({ event: (event) => events.push(event), link: (link) => links.push(link) });
  vi.advanceTimersByTime(seconds * 1000);
  stop();
  return { source, events, links };
}

test("the same moment gives the same cluster", () => {
  const strip = (source: DemoSource) => JSON.stringify(source.snapshot());
  expect(strip(new DemoSource(NOW))).toBe(strip(new DemoSource(NOW)));
});

test("it lives: points, logs, a lost worker, a broken barrier and a recovery come by themselves", () => {
  const { events, links } = watch(110);
  expect(links[0]?.state).toBe("live");
  const kinds = new Set(
    events.flatMap((event) => (event.type === "alert" ? event.data.alerts.map((alert) => alert.kind) : [])),
  );
  expect(kinds).toEqual(new Set(["straggler", "worker_lost", "recovered"]));
  const states = events.flatMap((event) => (event.type === "state" ? [event.data] : []));
  expect(states.some((state) => state.workers?.some((worker) => worker.status === "failed"))).toBe(true);
  expect(states.some((state) => state.barriers?.some((barrier) => barrier.status === "broken"))).toBe(true);
  expect(states.at(-1)?.workers?.every((worker) => worker.status !== "failed")).toBe(true);
  expect(events.filter((event) => event.type === "delta").length).toBeGreaterThan(50);
});

test("history holds the NaN, and a zoom shows the very steps", async () => {
  const { source } = watch(0);
  const loss = source.snapshot().series.find((one) => one.run_id === "moe-1b3-lr3e-4" && one.metric === "loss");
  expect(loss?.nan_count).toBe(3);
  const [fine] = await source.requests.series("moe-1b3-lr3e-4", { metric: "loss", from_step: 4115, to_step: 4125 });
  expect(fine?.steps.length).toBe(11);
  expect(fine?.values.filter((value) => value === null).length).toBe(3);
});

test("a task can be started and stopped", async () => {
  const { source } = watch(1);
  const { task_id } = await source.requests.createTask({
    name: "t",
    type: "training",
    dataset_id: "imagenet-1k",
    worker_count: 2,
    config: {},
  });
  await source.requests.stopTask(task_id);
  const board = await source.requests.dashboard();
  expect(board.tasks?.find((task) => task.id === task_id)?.status).toBe("stopped");
});
