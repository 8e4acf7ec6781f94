// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { DataSource } from "@/api/source";
import type { OutlineAnswer } from "@/api/wire";
import { useCatalog } from "@/stores/catalog";
import { opening } from "./opening";
import { outlineLoader } from "./outline-loader";
import { seriesStore } from "./series-store";
import { setSource } from "./source";

function answer(runs: readonly string[]): OutlineAnswer {
  const each = <T>(value: T) => runs.map(() => value);
  const outline = {
    runs: [...runs],
    metrics: ["loss"],
    hosts: [""],
    units: [""],
    id: runs.map((_, place) => place),
    run: runs.map((_, place) => place),
    ...{ metric: each(0), host: each(0), rank: each(0), device: each(65_535), unit: each(0) },
    ...{ total_points: each(1), nan_count: each(0), step: each(1), time: each(1), value: each(1) },
  };
  return { epoch: "e", seq: 1, outline };
}

const asked = vi.fn<(runs: readonly string[]) => Promise<OutlineAnswer>>();

beforeEach(() => {
  vi.useFakeTimers();
  opening.shown();
  asked.mockReset().mockImplementation(async (runs) => answer(runs));
  setSource({ kind: "live", requests: { outline: asked } } as unknown as DataSource);
  seriesStore.reset({ epoch: "e", series: [], outline: null, omitted_runs: ["a", "b"] });
  useCatalog.setState({ outlined: new Set(["here"]) });
});
afterEach(() => {
  outlineLoader.clear();
  vi.useRealTimers();
});

test("a run that the snapshot left out is asked for once somebody looks at it, and only once", async () => {
  outlineLoader.want(["here"]);
  outlineLoader.want(["a"]);
  outlineLoader.want(["a", "here"]);
  await vi.advanceTimersByTimeAsync(1_000);
  outlineLoader.want(["a"]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked.mock.calls).toEqual([[["a"]]]);
  expect([...(useCatalog.getState().outlined ?? [])]).toEqual(["here", "a"]);
  expect([seriesStore.namesOf(["a"]), seriesStore.namesOf(["b"]), outlineLoader.waiting]).toEqual([["loss"], [], 0]);
});

test("while the server is away it is asked again, unless another snapshot came", async () => {
  asked.mockRejectedValue(new Error("away"));
  outlineLoader.want(["a"]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked.mock.calls.length).toBeGreaterThan(1);
  outlineLoader.clear();
  await vi.advanceTimersByTimeAsync(5_000);
  const calls = asked.mock.calls.length;
  await vi.advanceTimersByTimeAsync(10_000);
  expect([asked.mock.calls.length, outlineLoader.waiting]).toEqual([calls, 0]);
});
