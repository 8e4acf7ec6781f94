// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Cursor } from "./cursor";
import type { Link, Sink } from "./source";
import { retryDelay, Stream } from "./stream";
import type { StreamEvent } from "./wire";

/** The browser's EventSource, driven by the test. */
class FakeEventSource extends EventTarget {
  static opened: FakeEventSource[] = [];
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  closed = false;
  static readonly OPEN = 1;
  static readonly CLOSED = 2;
  readyState = 0;
  constructor(readonly url: string) {
    super();
    FakeEventSource.opened.push(this);
  }
  close(): void {
    this.closed = true;
  }
  say(type: string, id: string, data: unknown): void {
    this.dispatchEvent(new MessageEvent(type, { data: JSON.stringify(data), lastEventId: id }));
  }
}

const newest = () => FakeEventSource.opened.at(-1) as FakeEventSource;

function open() {
  const links: Link[] = [];
  const events: StreamEvent[] = [];
  const sink: Sink = { link: (link) => links.push(link), event: (event) => events.push(event) };
  const diagnose = async () => ({ state: "disconnected" as const, detail: "Nobody there." });
  const stream = new Stream({ url: "/stream", sink, diagnose });
  stream.start();
  return { stream, links, events };
}

beforeEach(() => {
  FakeEventSource.opened = [];
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", FakeEventSource);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("resumes from the last id after a failure, and says what is going on", async () => {
  const { stream, links, events } = open();
  newest().onopen?.();
  newest().say("snapshot", "e:4", { series: [], runs: [] });
  newest().say("delta", "e:5", { new_series: [], points: [] });
  newest().onerror?.();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(links.map((link) => link.state)).toEqual(["connecting", "live", "disconnected"]);
  expect(links.at(-1)?.detail).toContain("Nobody there.");
  expect(newest().url).toBe("/stream?sparse=true&cursor=e%3A5");
  newest().say("delta", "e:5", { new_series: [], points: [] });
  newest().say("delta", "e:6", { new_series: [], points: [] });
  expect(events.map((event) => event.type)).toEqual(["snapshot", "delta", "delta"]);
  stream.stop();
  expect(newest().closed).toBe(true);
});

test("never more than one connection, and none after the stop", async () => {
  const { stream } = open();
  for (let i = 0; i < 5; i += 1) {
    newest().onerror?.();
    await vi.advanceTimersByTimeAsync(40_000);
    expect(FakeEventSource.opened.filter((source) => !source.closed).length).toBe(1);
  }
  stream.stop();
  const count = FakeEventSource.opened.length;
  await vi.advanceTimersByTimeAsync(120_000);
  expect(FakeEventSource.opened.length).toBe(count);
});

test("a silent stream is opened again", async () => {
  const { stream } = open();
  newest().onopen?.();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(FakeEventSource.opened.length).toBeGreaterThan(1);
  stream.stop();
});

test("after a resync the place is forgotten; without a snapshot the client asks anew", async () => {
  const { stream } = open();
  newest().say("delta", "e:7", { new_series: [], points: [] });
  newest().say("resync", "e:8", { reason: "too slow" });
  await vi.advanceTimersByTimeAsync(3_000);
  expect(newest().url).toBe("/stream?sparse=true");
  stream.stop();
});

test("the wait grows, has jitter and a ceiling", () => {
  expect(retryDelay(0, () => 1)).toBe(1_000);
  expect(retryDelay(20, () => 1)).toBe(30_000);
  expect(retryDelay(20, () => 0)).toBe(500);
});

test("a cursor takes a snapshot of any epoch, drops what it has seen, and takes streams without ids", () => {
  const cursor = new Cursor();
  expect(cursor.accept("delta", "")).toBe(true);
  expect(cursor.id).toBeNull();
  expect(cursor.accept("snapshot", "a:b:10")).toBe(true);
  expect(cursor.id).toBe("a:b:10");
  expect(cursor.accept("delta", "a:b:10")).toBe(false);
  expect(cursor.accept("snapshot", "new:1")).toBe(true);
  expect(cursor.accept("delta", "new:2")).toBe(true);
});

/** As public/early.js leaves it; the browser makes addresses absolute. */
function openEarly(path: string, readyState: number) {
  const source = new FakeEventSource(new URL(path, location.href).href);
  source.readyState = readyState;
  const message = (id: string) => new MessageEvent<string>("x", { data: "{}", lastEventId: id });
  const early: NonNullable<Window["strataEarly"]> = {
    source: source as unknown as EventSource,
    kept: [
      ["snapshot", message("e:1")],
      ["delta", message("e:2")],
    ],
    take: null,
  };
  window.strataEarly = early;
  return { source, early, message };
}

test("takes over the stream that was opened before the code was here, with what it kept and in order", async () => {
  const { source, early, message } = openEarly("/stream?sparse=true", 1);
  const { stream, links, events } = open();
  await vi.advanceTimersByTimeAsync(0);
  early.take?.("delta", message("e:3"));
  expect(FakeEventSource.opened).toHaveLength(1);
  expect(links.map((link) => link.state)).toEqual(["connecting", "live"]);
  expect(events.map((event) => event.type)).toEqual(["snapshot", "delta", "delta"]);
  source.onerror?.();
  await vi.advanceTimersByTimeAsync(3_000);
  expect(source.closed).toBe(true);
  expect(newest().url).toBe("/stream?sparse=true&cursor=e%3A3");
  early.take?.("delta", message("e:4"));
  expect(events).toHaveLength(3);
  stream.stop();
});

test.each([
  ["of another address", "/elsewhere/stream", 1],
  ["that was refused", "/stream?sparse=true", 2],
])("an early stream %s is closed and an own one opened", (_, path, readyState) => {
  const { source } = openEarly(path, readyState);
  const { stream } = open();
  expect(source.closed).toBe(true);
  expect(newest()).not.toBe(source);
  stream.stop();
});
