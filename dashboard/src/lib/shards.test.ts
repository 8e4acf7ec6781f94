import { describe, expect, it } from "vitest";
import type { Shard } from "@/api/wire";
import { describeMode, downReaders, isReadBy, readersOfAll, samplesReadBy } from "./shards";

const reader = (worker_id: string, start_index: number, end_index: number, alive = true) => ({
  worker_id,
  rank: 0,
  alive,
  start_index,
  end_index,
});

const shards: Shard[] = [
  {
    rank: 0,
    alive: true,
    epoch: 0,
    shard_id: 0,
    worker_id: "w-10",
    start_index: 0,
    end_index: 30,
    progress: 50,
    mode: "lanes",
    task_id: "t",
    readers: [reader("w-10", 0, 20), reader("w-2", 20, 30, false)],
  },
  {
    rank: null,
    alive: null,
    epoch: 0,
    shard_id: 1,
    worker_id: null,
    start_index: 30,
    end_index: 60,
    progress: null,
    mode: "lanes",
    task_id: null,
    readers: [],
  },
];

describe("shards", () => {
  it("knows every reader of a shard, not only the one who reads most", () => {
    expect(readersOfAll(shards)).toEqual(["w-2", "w-10"]);
    expect(shards.filter((one) => isReadBy(one, "w-2"))).toHaveLength(1);
    expect(samplesReadBy(shards, "w-2")).toBe(10);
    expect([...downReaders(shards)]).toEqual(["w-2"]);
  });
  it("says how a dataset is read", () => {
    expect(describeMode(shards)).toContain("task t");
    expect(describeMode([{ ...shards[1], mode: null } as Shard])).toContain("nobody");
  });
});
