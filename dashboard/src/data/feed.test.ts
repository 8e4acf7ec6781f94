// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { DataSource, Sink } from "@/api/source";
import type { RunInfo, Snapshot, StreamEvent } from "@/api/wire";
import { isOmitted, NO_RUNS_KNOWN, useCatalog } from "@/stores/catalog";
import { Feed } from "./feed";
import { opening } from "./opening";

const AROUND = ["dashboard", "fleet", "caller", "logs", "alerts"] as const;

function run(id: string): RunInfo {
  return { run_id: id, start_time_ms: 1, tags: [], attempts: [] } as unknown as RunInfo;
}

function snapshot(more: boolean, omitted: string[] = []): StreamEvent {
  const data = { epoch: "e", runs: [run("new")], series: [], reduced: false, omitted_series: 0, outline: null };
  return { type: "snapshot", seq: 1, data: { ...data, omitted_runs: omitted, more_runs: more } as Snapshot };
}

function meta(...ids: string[]): StreamEvent {
  return { type: "runs_meta", seq: 2, data: { runs: ids.map(run), deleted: [], partial: true } };
}

/** A source whose stream says what the test says, and that notes what is asked. */
class Script {
  readonly asked: string[] = [];
  sink: Sink = { event: () => {}, link: () => {} };
  readonly runs = vi.fn(async () => [run("new"), run("old")]);
  readonly #away = new Error("away");
  readonly source = {
    kind: "live",
    requests: {
      ...Object.fromEntries(AROUND.map((name) => [name, () => this.#refuse(name)])),
      status: () => Promise.reject(this.#away),
      runs: () => {
        this.asked.push("runs");
        return this.runs();
      },
    },
    open: (sink: Sink) => {
      this.sink = sink;
      return () => {};
    },
  } as unknown as DataSource;
  readonly feed = new Feed(this.source);

  count(name: string): number {
    return this.asked.filter((one) => one === name).length;
  }

  #refuse(name: string): Promise<never> {
    this.asked.push(name);
    return Promise.reject(this.#away);
  }
}

let script: Script;

beforeEach(() => {
  vi.useFakeTimers();
  useCatalog.setState(NO_RUNS_KNOWN);
  script = new Script();
  script.feed.start();
});
afterEach(() => {
  script.feed.stop();
  vi.useRealTimers();
});

const known = () => useCatalog.getState().runs.map((one) => one.run_id);

// The page of this file is not here until the end of this test: it must stand first.
test("the list of all runs is asked for when the page is here and has asked, and what is around it before", async () => {
  script.sink.event(snapshot(true));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(known()).toEqual(["new"]);
  expect([script.count("runs"), script.count("dashboard")]).toEqual([0, 1]);
  opening.shown();
  await vi.advanceTimersByTimeAsync(500);
  expect([script.count("runs"), script.count("dashboard")]).toEqual([1, 1]);
  expect(known().sort()).toEqual(["new", "old"]);
  expect(useCatalog.getState().whole).toBe(true);
});

test("the series of runs that a snapshot did not tell of must be asked for, also of those that it names only", () => {
  const omitted = () => ["new", "old"].filter((id) => isOmitted(useCatalog.getState(), id));
  script.sink.event(snapshot(false));
  expect(omitted()).toEqual([]);
  script.sink.event(snapshot(true));
  expect(omitted()).toEqual(["old"]);
  script.sink.event(snapshot(false, ["new"]));
  expect(omitted()).toContain("new");
});

test("a snapshot that names all runs is followed by no list of them", async () => {
  script.sink.event(snapshot(false));
  await vi.advanceTimersByTimeAsync(5_000);
  expect(script.asked.toSorted()).toEqual([...AROUND].sort());
});

test("a snapshot that comes soon after the stream is open is the only one to ask for the rest", async () => {
  await vi.advanceTimersByTimeAsync(400);
  script.sink.link({ state: "live", detail: "", retryAt: null });
  await vi.advanceTimersByTimeAsync(400);
  script.sink.event(snapshot(false));
  await vi.advanceTimersByTimeAsync(5_000);
  expect(script.count("dashboard")).toBe(1);
});

test("while the snapshot does not come, what is around it is asked for, and once more with it", async () => {
  script.sink.link({ state: "live", detail: "", retryAt: null });
  await vi.advanceTimersByTimeAsync(600);
  expect(script.asked.toSorted()).toEqual([...AROUND].sort());
  script.sink.event(snapshot(false));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(script.count("dashboard")).toBe(2); // the first answer may be older than where the stream begins
});

test("of two snapshots one after the other the second asks", async () => {
  script.sink.event(snapshot(true));
  script.sink.event(snapshot(true));
  await vi.advanceTimersByTimeAsync(5_000);
  expect([script.count("runs"), script.count("dashboard")]).toEqual([1, 1]);
});

test("what is told of runs while all of them are on their way is newer than the answer", async () => {
  let answer: (runs: RunInfo[]) => void = () => {};
  script.runs.mockImplementationOnce(() => new Promise((resolve) => (answer = resolve)));
  script.sink.event(snapshot(true));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(script.count("runs")).toBe(1);
  script.sink.event(meta("newest"));
  answer([run("new"), run("old")]);
  await vi.advanceTimersByTimeAsync(0);
  expect(known().sort()).toEqual(["new", "newest", "old"]);
});

test("a list that could not be had is asked for again", async () => {
  script.runs.mockRejectedValueOnce(new Error("away"));
  script.sink.event(snapshot(true));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(useCatalog.getState().whole).toBe(false);
  await vi.advanceTimersByTimeAsync(3_000);
  expect([script.count("runs"), useCatalog.getState().whole]).toEqual([2, true]);
});
