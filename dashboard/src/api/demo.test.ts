import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "./client";
import { DemoSource, type Recording } from "./demo";
import type { StreamEvent } from "./wire";

const THEN = 1_700_000_000_000;
const NOW = 1_800_000_000_000;

const RECORDING: Recording = {
  started_ms: THEN,
  duration_ms: 10_000,
  events: [
    [0, "snapshot", `{"epoch":"e","runs":[],"series":[{"times":[${THEN - 5000}],"values":[1700000000.5e3,7]}]}`],
    [4000, "state", `{"coordinator":{"started_at":${THEN / 1000 - 60},"spool_backlog_bytes":1500000000}}`],
  ],
  answers: {
    "/status": [
      [0, `{"uptime":1}`],
      [5000, `{"uptime":6}`],
    ],
    "/logs": [[0, `[{"level":"info","message":"Step 1"},{"level":"error","message":"gone"}]`]],
    "/runs/r/media/entries": [
      [0, `{"entries":[{"step":1,"text":"a"},{"step":50,"text":"b"},{"step":100,"text":"c"}]}`],
    ],
  },
};

beforeEach(() => {
  vi.useFakeTimers();
  vi.setSystemTime(NOW);
});
afterEach(() => {
  vi.useRealTimers();
});

function play(seconds: number) {
  const events: StreamEvent[] = [];
  const source = new DemoSource(RECORDING);
  const stop = source.open({ event: (event) => events.push(event), link: () => {} });
  vi.advanceTimersByTime(seconds * 1000);
  return { source, events, stop };
}

test("events come in their own time, again and again, until it is stopped", () => {
  const { events, stop } = play(3);
  expect(events.map((event) => event.type)).toEqual(["snapshot"]);
  vi.advanceTimersByTime(21_500);
  expect(events.map((event) => event.type)).toEqual(["snapshot", "state", "snapshot", "state", "snapshot", "state"]);
  stop();
  vi.advanceTimersByTime(60_000);
  expect(events).toHaveLength(6);
});

test("times are of today, other numbers stay", () => {
  const { events } = play(15);
  expect(events[0]?.data).toMatchObject({ series: [{ times: [NOW - 5000], values: [NOW + 500, 7] }] });
  expect(events[1]?.data).toEqual({ coordinator: { started_at: NOW / 1000 - 60, spool_backlog_bytes: 1_500_000_000 } });
  expect(events[3]?.data).toMatchObject({ coordinator: { started_at: NOW / 1000 - 50 } });
});

test("a question is answered as it was at that time; a recording takes no commands", async () => {
  const { source } = play(1);
  expect(await source.requests.status()).toEqual({ uptime: 1 });
  vi.advanceTimersByTime(5000);
  expect(await source.requests.status()).toEqual({ uptime: 6 });
  expect(await source.requests.logs({ q: "step" })).toHaveLength(1);
  expect(await source.requests.logs({ level: "error" })).toHaveLength(1);
  expect(await source.requests.logs({ before: 5 })).toEqual([]);
  await expect(source.requests.stopTask("t")).rejects.toThrow(ApiError);
});

test("what was logged at one step is that step's", async () => {
  const { source } = play(1);
  const name = { metric: "sample", kind: "text", rank: 0 };
  const texts = async (query: object) =>
    (await source.requests.mediaEntries("r", { ...name, ...query })).entries.map((entry) => entry.text);
  expect(await texts({ from_step: 50, to_step: 50, limit: 1 })).toEqual(["b"]);
  expect(await texts({ from_step: 50 })).toEqual(["b", "c"]);
  expect(await texts({})).toEqual(["a", "b", "c"]);
});
