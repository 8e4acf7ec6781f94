import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { Cursor } from "@/api/cursor";
import type { Delta, NewSeries, Outline, OutlineAnswer, Snapshot, SnapshotSeries, StreamEvent } from "@/api/wire";
import { SeriesStore } from "./series-store";

const head = (id: number): NewSeries => ({
  id,
  run_id: "r",
  metric: `m${id}`,
  host: "",
  rank: 0,
  device: 65_535,
  unit: "",
  total_points: 0,
});

type Point = readonly [step: number, value: number | null];

function wire(id: number, points: readonly Point[]): SnapshotSeries {
  const values = points.map(([, value]) => value);
  return {
    ...head(id),
    attempt: null,
    origin: null,
    steps: points.map(([step]) => step),
    times: points.map(([step]) => step * 10),
    values,
    min: [...values],
    max: [...values],
    bad: values.map((value) => (value === null ? 1 : 0)),
    total_points: points.length,
    nan_count: values.filter((value) => value === null).length,
  };
}

/** A server with a log of points: what it would send on connect, and as deltas. */
class FakeServer {
  constructor(readonly points: readonly Point[]) {}

  snapshot(upto: number): Snapshot {
    const seen = this.points.slice(0, upto);
    const series = seen.length > 0 ? [wire(1, seen)] : [];
    return {
      epoch: "e",
      runs: [],
      reduced: false,
      series,
      omitted_series: 0,
      outline: null,
      omitted_runs: [],
      more_runs: false,
    };
  }

  delta(from: number, to: number): Delta {
    const part = this.points.slice(from, to);
    const fresh = from === 0 ? [head(1)] : [];
    return {
      new_series: fresh,
      points: [[1, part.map(([s]) => s), part.map(([s]) => s * 10), part.map(([, v]) => v)]],
    };
  }
}

const logs = fc.array(fc.option(fc.double({ min: -9, max: 9, noNaN: true }), { nil: null }), {
  minLength: 1,
  maxLength: 80,
});

/** How the client's day goes: each number is a batch of points; marks say what happens after it. */
const days = fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.constantFrom("on", "replay", "resync")), {
  maxLength: 30,
});

test("any split, replayed overlap or resync gives the same series as one fetch", () => {
  fc.assert(
    fc.property(logs, days, (values, day) => {
      const server = new FakeServer(values.map((value, i) => [i + 1, value] as const));
      const store = new SeriesStore();
      const cursor = new Cursor();
      const send = (type: StreamEvent["type"], seq: number, data: unknown) => {
        if (!cursor.accept(type, `e:${seq}`)) return;
        if (type === "snapshot") store.reset(data as Snapshot);
        if (type === "delta") store.apply(data as Delta);
      };
      const sent: [number, Delta][] = [];
      send("snapshot", 0, server.snapshot(0));
      let at = 0;
      let seq = 0;
      for (const [size, then] of [...day, [values.length, "on"] as const]) {
        const to = Math.min(values.length, at + size);
        if (to > at) {
          seq += 1;
          const delta = server.delta(at, to);
          sent.push([seq, delta]);
          send("delta", seq, delta);
          at = to;
        }
        // A reconnect with the cursor may be answered with events that were already seen.
        if (then === "replay") for (const [number, delta] of sent.slice(-3)) send("delta", number, delta);
        if (then === "resync") {
          send("resync", seq, {});
          send("snapshot", seq, server.snapshot(at));
        }
      }
      const got = store.of("m1")[0];
      expect(got?.values.slice()).toEqual(values);
      expect(got?.steps.slice()).toEqual(values.map((_, i) => i + 1));
      expect(got?.nanCount).toBe(values.filter((value) => value === null).length);
      expect(got?.totalPoints).toBe(values.length);
    }),
  );
});

test("listeners hear of their metric only, and of the catalogue when a name appears", () => {
  const store = new SeriesStore();
  store.reset({ series: [wire(1, [[1, 1]]), wire(2, [[1, 1]])], outline: null });
  const [one, two, names] = [vi.fn(), vi.fn(), vi.fn()];
  store.subscribe("m1", one);
  const stop = store.subscribe("m2", two);
  store.subscribeCatalog(names);
  store.apply({ new_series: [], points: [[1, [2], [20], [2]]] });
  expect([one.mock.calls.length, two.mock.calls.length, names.mock.calls.length]).toEqual([1, 0, 0]);
  store.apply({ new_series: [head(3)], points: [[3, [1], [10], [1]]] });
  expect(names).toHaveBeenCalledTimes(1);
  expect(store.names()).toEqual(["m1", "m2", "m3"]);
  stop();
  store.apply({ new_series: [], points: [[2, [2], [20], [2]]] });
  expect(two).not.toHaveBeenCalled();
});

test("points of a series that nobody announced are counted, not lost in silence", () => {
  const store = new SeriesStore();
  store.apply({ new_series: [], points: [[9, [1, 2], [1, 2], [1, 2]]] });
  expect(store.orphans).toBe(2);
});

test("folding keeps extremes and NaN counts, and never folds over a restart", () => {
  const store = new SeriesStore();
  store.reset({
    outline: null,
    series: [
      wire(1, [
        [1, 5],
        [2, -5],
        [3, null],
        [4, 1],
        [5, 6],
        [2, 7],
        [3, 8],
      ]),
    ],
  });
  const series = store.of("m1")[0];
  series?.fold();
  expect(series?.steps.slice()).toEqual([2, 4, 5, 3]);
  expect(series?.min.slice()).toEqual([-5, 1, 6, 7]);
  expect(series?.max.slice()).toEqual([5, 1, 6, 8]);
  expect(series?.bad.slice()).toEqual([0, 1, 0, 0]);
  expect(series?.exact).toBe(false);
});

test("a series holds no more than the server's own ceiling, and folds what comes live", () => {
  const store = new SeriesStore();
  store.reset({ series: [wire(1, [[0, 0]])], outline: null });
  const series = store.of("m1")[0];
  if (!series) throw new Error("no series");
  for (let step = 1; step <= 5000; step += 1) series.append([step], [step], [step % 7 === 0 ? -1 : 1]);
  expect(series.length).toBeLessThanOrEqual(2000);
  expect(series.length).toBeGreaterThan(1000);
  expect([Math.min(...series.min.slice().map(Number)), Math.max(...series.max.slice().map(Number))]).toEqual([-1, 1]);
  expect(series.steps.at(-1)).toBe(5000);
});

test("what comes live is held once while every point stands for itself", () => {
  const store = new SeriesStore();
  store.apply({
    new_series: [head(1)],
    points: [[1, [1, 2], [1, 2], [3, 4]]],
  });
  const series = store.of("m1")[0];
  expect(series?.min).toBe(series?.values);
  series?.fold();
  expect([series?.min.slice(), series?.values.slice(), series?.max.slice()]).toEqual([[3], [3.5], [4]]);
});

test("a deleted run leaves nothing behind, and its late points find nobody", () => {
  const store = new SeriesStore();
  const other = { ...wire(2, [[1, 5]]), run_id: "kept", metric: "m1" };
  const alone = { ...wire(3, [[1, 5]]), run_id: "r", metric: "only here" };
  store.reset({ series: [wire(1, [[1, 4]]), other, alone], outline: null });
  const [changed, catalog] = [vi.fn(), vi.fn()];
  store.subscribe("m1", changed);
  store.subscribeCatalog(catalog);
  store.drop(["r"]);
  expect(store.names()).toEqual(["m1"]);
  expect(store.of("m1").map((series) => series.head.run_id)).toEqual(["kept"]);
  expect(changed).toHaveBeenCalledOnce();
  expect(catalog).toHaveBeenCalledOnce();
  store.apply({ new_series: [], points: [[1, [2], [20], [3]]] });
  expect(store.orphans).toBe(1);
  store.drop(["nobody"]);
  expect(catalog).toHaveBeenCalledOnce();
});

const outlineOf = (run: string, metric: string, id: number, total: number) => ({
  runs: [run],
  metrics: [metric],
  hosts: [""],
  units: [""],
  id: [id],
  run: [0],
  metric: [0],
  host: [0],
  rank: [0],
  device: [65_535],
  unit: [0],
  total_points: [total],
  nan_count: [0],
  step: [9],
  time: [90],
  value: [1],
});

const extend = (store: SeriesStore, outline: Outline, epoch = "e", seq = 0) =>
  store.extend(Promise.resolve({ epoch, seq, outline }));

test("names are those of the runs asked for, also of a run that the snapshot left out", async () => {
  const store = new SeriesStore();
  store.reset({ epoch: "e", series: [], outline: outlineOf("a", "loss", 1, 10) });
  expect(store.namesOf(["a"])).toEqual(["loss"]);
  expect(store.namesOf(["b"])).toEqual([]);
  await extend(store, outlineOf("b", "other", 2, 10));
  await extend(store, outlineOf("b", "other", 2, 10));
  expect(store.namesOf(["b"])).toEqual(["other"]);
  expect(store.of("other")).toHaveLength(1);
  await expect(extend(store, outlineOf("c", "x", 3, 1), "f")).rejects.toThrow("epoch f");
});

test("a series that is new to the stream only has a past to ask for", () => {
  const store = new SeriesStore();
  store.reset({ epoch: "e", series: [], outline: null });
  store.apply({ new_series: [{ ...head(1), total_points: 40 }, head(2)], points: [[1, [40], [400], [7]]] });
  const [old] = store.of("m1");
  expect([old?.held, old?.totalPoints, old?.values.slice()]).toEqual([false, 41, [7]]);
  expect(store.of("m2")[0]?.held).toBe(true);
});

test("what the store cannot give now is asked for again, not shown as empty", () => {
  const store = new SeriesStore();
  store.reset({ epoch: "e", series: [], outline: outlineOf("a", "loss", 1, 10) });
  const [series] = store.of("loss");
  if (!series) throw new Error("no series");
  series.ask();
  store.take({ epoch: "e", series: [], missing: [1] }, [series], 512);
  expect([series.asking, series.held]).toEqual([false, false]);
});

test("series of an outline that nobody has looked at follow the stream, and a deleted run takes its own along", async () => {
  const store = new SeriesStore();
  store.reset({ epoch: "e", series: [], outline: outlineOf("a", "loss", 1, 10) });
  await extend(store, outlineOf("b", "loss", 2, 5));
  const heard = vi.fn();
  store.subscribe("loss", heard);
  store.apply({ new_series: [], points: [[1, [10, 11], [100, 110], [null, 7]]] });
  expect([heard.mock.calls.length, store.received, store.orphans]).toEqual([1, 2, 0]);
  expect([store.count("loss", "a"), store.count("loss", "b"), [...store.seen()].length]).toEqual([1, 1, 0]);
  const [first] = store.of("loss");
  expect([
    first?.totalPoints,
    first?.nanCount,
    first?.steps.at(-1),
    first?.times.at(-1),
    first?.values.slice(),
  ]).toEqual([12, 1, 11, 110, [7]]);
  expect(store.of("loss").map((series) => series.head.run_id)).toEqual(["a", "b"]);
  expect([store.count("loss", "a"), [...store.seen()].length]).toEqual([1, 2]);
  await extend(store, outlineOf("c", "other", 3, 5));
  store.drop(["b", "c"]);
  expect([store.names(), store.namesOf(["a", "b", "c"]), store.of("other")]).toEqual([["loss"], ["loss"], []]);
  store.apply({ new_series: [], points: [[3, [6], [60], [1]]] });
  expect(store.orphans).toBe(1);
});

test("a series that the stream announced before its outline came is one series, in the outline's order", async () => {
  const store = new SeriesStore();
  store.reset({ epoch: "e", series: [], outline: outlineOf("a", "m1", 7, 10) });
  store.apply({ new_series: [{ ...head(1), total_points: 3 }], points: [[1, [4], [40], [1]]] });
  await extend(store, outlineOf("r", "m1", 1, 4));
  expect([store.count("m1", "r"), store.count("m1", "a")]).toEqual([1, 1]);
  expect(store.of("m1").map((series) => [series.head.run_id, series.totalPoints])).toEqual([
    ["a", 10],
    ["r", 4],
  ]);
});

test("what was shown before a reconnect is shown until its points are here again", () => {
  const store = new SeriesStore();
  store.reset({ epoch: "e", series: [], outline: outlineOf("a", "loss", 1, 3) });
  const before = store.of("loss");
  for (const series of before) series.ask();
  const points = { steps: [1, 2, 3], times: [1, 2, 3], values: [3, 2, 1], min: null, max: null, bad: null };
  store.take({ epoch: "e", series: [{ id: 1, total_points: 3, nan_count: 0, ...points }], missing: [] }, before, 512);
  store.reset({ epoch: "f", series: [], outline: outlineOf("a", "loss", 9, 4) });
  expect([store.of("loss")[0]?.held, store.of("loss")[0]?.values.slice()]).toEqual([true, [3, 2, 1]]);
});

test("whenever an outline of a running run is made and comes, its series ends as the stream tells it", async () => {
  const LAST = 12;
  // Events that came before the page asked; how many more are in the answer, and how many more the page has heard when
  // it is here: the stream runs ahead of an answer, or behind it. Whether somebody looks at the metric at once.
  const day = fc.tuple(fc.nat(LAST), fc.nat(LAST), fc.nat(LAST), fc.boolean());
  await fc.assert(
    fc.asyncProperty(day, async ([asked, answered, heard, looked]) => {
      const made = Math.min(LAST, asked + answered);
      const store = new SeriesStore();
      store.reset({ epoch: "e", series: [], outline: null, omitted_runs: ["b"] });
      let seq = 0;
      const tell = (upto: number) => {
        while (seq < Math.min(LAST, upto)) {
          seq += 1;
          store.apply({ new_series: [], points: [[2, [seq], [seq * 10], [seq]]] }, seq);
        }
      };
      tell(asked);
      let answer: (it: OutlineAnswer) => void = () => {};
      const extended = store.extend(
        new Promise((resolve) => {
          answer = resolve;
        }),
      );
      tell(asked + heard);
      const outline = { ...outlineOf("b", "loss", 2, made), step: [made], time: [made * 10], value: [made] };
      answer({ epoch: "e", seq: made, outline });
      await extended;
      if (looked) store.of("loss");
      tell(LAST);
      const [series] = store.of("loss");
      expect([series?.totalPoints, series?.steps.at(-1), series?.values.at(-1)]).toEqual([LAST, LAST, LAST]);
      expect(store.orphans).toBe(0);
    }),
  );
});

test("points of series that nobody named are a fault unless the snapshot left runs out", () => {
  const orphans = (left: { omitted_runs?: string[]; more_runs?: boolean }) => {
    const store = new SeriesStore();
    store.reset({ epoch: "e", series: [], outline: null, ...left });
    store.apply({ new_series: [], points: [[2, [1], [10], [0.5]]] }, 1);
    return store.orphans;
  };
  expect([orphans({}), orphans({ omitted_runs: ["b"] }), orphans({ more_runs: true })]).toEqual([1, 0, 0]);
});

test("an outline that was asked for before everything was told anew is not taken", async () => {
  const store = new SeriesStore();
  store.reset({ epoch: "e", series: [], outline: null, omitted_runs: ["b"] });
  let answer: (it: OutlineAnswer) => void = () => {};
  const extended = store.extend(
    new Promise((resolve) => {
      answer = resolve;
    }),
  );
  store.reset({ epoch: "e", series: [], outline: outlineOf("b", "loss", 2, 5) });
  answer({ epoch: "e", seq: 1, outline: outlineOf("b", "loss", 2, 4) });
  await expect(extended).rejects.toThrow();
  expect([store.count("loss", "b"), store.of("loss")[0]?.totalPoints]).toEqual([1, 5]);
});
