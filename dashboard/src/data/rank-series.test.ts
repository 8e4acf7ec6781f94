import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { RunSeries } from "@/api/wire";
import { RankSeries } from "./rank-series";
import { SeriesStore } from "./series-store";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const head = { id: 0, run_id: "r", metric: "m", host: "", rank: 0, device: 65_535, unit: "", total_points: 0 };

function world() {
  const store = new SeriesStore();
  const answer = [{ rank: 7 } as RunSeries];
  const ask = vi.fn(async () => answer);
  const ranks = new RankSeries(store, ask);
  const arrived = vi.fn();
  let step = 0;
  return {
    answer,
    ask,
    arrived,
    look: () => ranks.get("r", "m", 7, arrived),
    news: () => store.apply({ new_series: step++ ? [] : [head], points: [[0, [step], [step], [1]]] }),
  };
}

test("a rank is asked for once while nothing is new", async () => {
  const { answer, ask, arrived, look } = world();
  expect(look()).toBeNull();
  expect(look()).toBeNull();
  await vi.runAllTimersAsync();
  expect(look()).toBe(answer);
  await vi.runAllTimersAsync();
  expect(ask).toHaveBeenCalledOnce();
  expect(ask).toHaveBeenCalledWith("r", "m", 7);
  expect(arrived).toHaveBeenCalledOnce();
});

test("news are asked for after a while, all at once", async () => {
  const { ask, arrived, look, news } = world();
  look();
  await vi.advanceTimersByTimeAsync(0);
  for (let i = 0; i < 5; i += 1) {
    news();
    look();
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(ask).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(2000);
  expect(ask).toHaveBeenCalledTimes(2);
  expect(arrived).toHaveBeenCalledTimes(2);
  look();
  await vi.runAllTimersAsync();
  expect(ask).toHaveBeenCalledTimes(2);
});

test("an answer that fails takes nothing away, and is asked for again", async () => {
  const { answer, ask, look, news } = world();
  look();
  await vi.runAllTimersAsync();
  ask.mockRejectedValueOnce(new Error("away"));
  news();
  look();
  await vi.runAllTimersAsync();
  expect(look()).toBe(answer);
  await vi.runAllTimersAsync();
  expect(ask).toHaveBeenCalledTimes(3);
});
