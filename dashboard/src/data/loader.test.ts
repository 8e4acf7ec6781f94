import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { Outline, PointsAnswer, SeriesPoints } from "@/api/wire";
import { PointLoader } from "./loader";
import { SeriesStore } from "./series-store";

type Value = number | null;

function outline(counts: readonly number[], values: readonly (readonly Value[])[]): Outline {
  const each = <T>(make: (i: number) => T) => counts.map((_, i) => make(i));
  return {
    runs: ["r"],
    metrics: each((i) => `m${i}`),
    hosts: [""],
    units: ["", "ms"],
    id: each((i) => i),
    run: each(() => 0),
    metric: each((i) => i),
    host: each(() => 0),
    rank: each(() => 0),
    device: each(() => 65_535),
    unit: each(() => 1),
    total_points: [...counts],
    nan_count: each((i) => (values[i] ?? []).slice(0, counts[i]).filter((value) => value === null).length),
    step: each((i) => counts[i] ?? 0),
    time: each((i) => (counts[i] ?? 0) * 10),
    value: each((i) => values[i]?.[(counts[i] ?? 1) - 1] ?? null),
  };
}

function points(id: number, values: readonly Value[]): SeriesPoints {
  return {
    id,
    total_points: values.length,
    nan_count: values.filter((value) => value === null).length,
    steps: values.map((_, i) => i + 1),
    times: values.map((_, i) => (i + 1) * 10),
    values: [...values],
    min: null,
    max: null,
    bad: null,
  };
}

const settled = () => new Promise((done) => setTimeout(done, 0));

/** A request that is answered when the test says so. */
class Desk {
  readonly asked: { ids: readonly number[]; points: number; answer(it: PointsAnswer): void; fail(): void }[] = [];
  readonly ask = (ids: readonly number[], count: number) =>
    new Promise<PointsAnswer>((answer, fail) => {
      this.asked.push({ ids, points: count, answer, fail: () => fail(new Error("away")) });
    });
}

test("whenever points are asked for and read, the series ends as one fetch would give it", async () => {
  const value = fc.option(fc.double({ min: -9, max: 9, noNaN: true }), { nil: null });
  const log = fc.array(value, { minLength: 4, maxLength: 60 });
  // Where the outline was made, when the page asks, when the server reads, when the answer is here: in this order.
  const moments = fc.tuple(fc.nat(), fc.nat(), fc.nat(), fc.nat());
  await fc.assert(
    fc.asyncProperty(log, moments, async (values, raw) => {
      const [made = 1, asks = 1, reads = 1, arrives = 1] = raw
        .map((one) => 1 + (one % values.length))
        .sort((a, b) => a - b);
      const desk = new Desk();
      const store = new SeriesStore();
      const loader = new PointLoader(store, desk.ask);
      store.reset({ epoch: "e", series: [], outline: outline([made], [values]) });
      const series = store.of("m0")[0];
      if (!series) throw new Error("not there");
      const send = (from: number, to: number) => {
        for (let i = from; i < to; i += 1) {
          store.apply({ new_series: [], points: [[0, [i + 1], [(i + 1) * 10], [values[i] ?? null]]] });
        }
      };
      expect(series.values.slice()).toEqual([values[made - 1]]);
      // The server may have read points which the stream brings only after the answer.
      const seen = Math.min(asks, reads);
      send(made, seen);
      expect(loader.want(series, 100)).toBe(false);
      await settled();
      const early = arrives % 2 === 0 ? seen : arrives;
      send(seen, early);
      desk.asked[0]?.answer({ epoch: "e", series: [points(0, values.slice(0, reads))], missing: [] });
      await settled();
      send(early, values.length);
      expect(series.values.slice()).toEqual(values);
      expect(series.steps.slice()).toEqual(values.map((_, i) => i + 1));
      expect(series.totalPoints).toBe(values.length);
      expect(series.nanCount).toBe(values.filter((one) => one === null).length);
      expect(series.bad.slice()).toEqual(values.map((one) => (one === null ? 1 : 0)));
      expect(loader.want(series, 100)).toBe(true);
      await settled();
      expect(desk.asked).toHaveLength(1);
    }),
    { numRuns: 60 },
  );
});

test("charts of one frame share requests, and the first ones come first", async () => {
  const desk = new Desk();
  const store = new SeriesStore();
  const loader = new PointLoader(store, desk.ask);
  const values = Array.from({ length: 80 }, () => [1, 2]);
  store.reset({ epoch: "e", series: [], outline: outline(Array(80).fill(5000), values) });
  for (let i = 0; i < 80; i += 1) for (const one of store.of(`m${i}`)) loader.want(one, 512);
  await settled();
  expect(desk.asked.map((one) => one.ids.length)).toEqual([32, 32]);
  expect(desk.asked[0]?.ids[0]).toBe(0);
  const drawn = vi.fn();
  store.subscribe("m0", drawn);
  desk.asked[0]?.answer({ epoch: "e", series: Array.from({ length: 32 }, (_, i) => points(i, [1, 2])), missing: [] });
  await settled();
  expect(drawn).toHaveBeenCalledTimes(1);
  expect(desk.asked.map((one) => one.ids.length)).toEqual([32, 32, 16]);
});

test("short series are asked for by the hundred", async () => {
  const desk = new Desk();
  const store = new SeriesStore();
  const loader = new PointLoader(store, desk.ask);
  const values = Array.from({ length: 300 }, () => [1, 2]);
  store.reset({ epoch: "e", series: [], outline: outline(Array(300).fill(2), values) });
  for (let i = 0; i < 300; i += 1) for (const one of store.of(`m${i}`)) loader.want(one, 512);
  await settled();
  expect(desk.asked.map((one) => one.ids.length)).toEqual([256, 44]);
});

test("a failed request and one of another epoch are tried again when the chart is still there", async () => {
  vi.useFakeTimers();
  const desk = new Desk();
  const store = new SeriesStore();
  const loader = new PointLoader(store, desk.ask);
  store.reset({ epoch: "e", series: [], outline: outline([2], [[1, 2]]) });
  const want = () => store.of("m0").map((one) => loader.want(one, 512));
  store.subscribe("m0", want);
  want();
  await vi.advanceTimersByTimeAsync(0);
  desk.asked[0]?.fail();
  await vi.advanceTimersByTimeAsync(5_000);
  desk.asked[1]?.answer({ epoch: "older", series: [points(0, [9])], missing: [] });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(desk.asked).toHaveLength(3);
  desk.asked[2]?.answer({ epoch: "e", series: [points(0, [1, 2])], missing: [] });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(store.of("m0")[0]?.values.slice()).toEqual([1, 2]);
  expect(desk.asked).toHaveLength(3);
  vi.useRealTimers();
});

test("a reconnect keeps the old points on show until the new ones are here", async () => {
  const desk = new Desk();
  const store = new SeriesStore();
  const loader = new PointLoader(store, desk.ask);
  store.reset({ epoch: "e", series: [], outline: outline([2], [[1, 2]]) });
  for (const one of store.of("m0")) loader.want(one, 512);
  await settled();
  desk.asked[0]?.answer({ epoch: "e", series: [points(0, [1, 2])], missing: [] });
  await settled();
  store.reset({ epoch: "f", series: [], outline: outline([3], [[1, 2, 3]]) });
  const series = store.of("m0")[0];
  expect(series?.values.slice()).toEqual([1, 2]);
  expect(series && loader.want(series, 512)).toBe(true);
  await settled();
  desk.asked[1]?.answer({ epoch: "f", series: [points(0, [1, 2, 3])], missing: [] });
  await settled();
  expect(series?.values.slice()).toEqual([1, 2, 3]);
});

test("more detail is asked for once, and only where points stand for several", async () => {
  const desk = new Desk();
  const store = new SeriesStore();
  const loader = new PointLoader(store, desk.ask);
  store.reset({ epoch: "e", series: [], outline: outline([100, 2], [[], [1, 2]]) });
  const [coarse, exact] = [store.of("m0")[0], store.of("m1")[0]];
  if (!coarse || !exact) throw new Error("not there");
  for (const one of [coarse, exact]) loader.want(one, 512);
  await settled();
  const thin = { ...points(0, [1, 2]), total_points: 100, min: [0, 1], max: [2, 3], bad: [0, 0] };
  desk.asked[0]?.answer({ epoch: "e", series: [thin, points(1, [1, 2])], missing: [] });
  await settled();
  expect([coarse.exact, exact.exact]).toEqual([false, true]);
  for (const one of [coarse, exact, coarse]) loader.want(one, 512);
  await settled();
  expect(desk.asked).toHaveLength(1);
  for (const one of [coarse, exact, coarse]) expect(loader.want(one, 2000)).toBe(true);
  await settled();
  expect(desk.asked.map((one) => [one.ids, one.points])).toEqual([
    [[0, 1], 512],
    [[0], 2000],
  ]);
});

test("a series that the server no longer has shows its newest point and is not asked for again", async () => {
  const desk = new Desk();
  const store = new SeriesStore();
  const loader = new PointLoader(store, desk.ask);
  store.reset({ epoch: "e", series: [], outline: outline([3], [[1, 2, 7]]) });
  const want = () => store.of("m0").map((one) => loader.want(one, 512));
  want();
  await settled();
  desk.asked[0]?.answer({ epoch: "e", series: [], missing: [] });
  await settled();
  expect(want()).toEqual([true]);
  expect(store.of("m0")[0]?.values.slice()).toEqual([7]);
  await settled();
  expect(desk.asked).toHaveLength(1);
});
