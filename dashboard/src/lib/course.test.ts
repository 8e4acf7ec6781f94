import { describe, expect, it } from "vitest";
import type { AttemptRow, TimeShares } from "@/api/wire";
import { endedAs, lanesOf, segmentsOf, sizesOf } from "./course";

const SHARES: TimeShares = {
  wall_s: 100,
  starting_s: 5,
  recovering_s: 10,
  lost_s: 15,
  training_s: 45,
  barrier_s: 15,
  checkpoint_s: 10,
  section_s: 0,
  unmeasured_s: 0,
};

function attempt(change: Partial<AttemptRow>): AttemptRow {
  return {
    attempt: 1,
    size: 4,
    status: "running",
    ended_by: null,
    reason: null,
    started_at_ms: 1000,
    working_at_ms: null,
    ended_at_ms: null,
    resume_step: null,
    top_step: null,
    lost_steps: null,
    lost_s: null,
    ...change,
  };
}

describe("the end of an attempt", () => {
  it("is no failure where the task grew or left in order", () => {
    const ended = (change: Partial<AttemptRow>) => endedAs(attempt({ status: "recovering", ...change }));
    expect(ended({ ended_by: "grown" })).toBe("grown");
    expect(ended({ ended_by: "drained" })).toBe("drained");
    expect(ended({ ended_by: "killed" })).toBe("failed");
    expect(ended({ ended_by: null })).toBe("failed");
    expect(endedAs(attempt({ status: "stopped", ended_by: "asked" }))).toBe("stopped");
  });
});

describe("segments", () => {
  it("show what took time, in percent of the wall time", () => {
    const segments = segmentsOf(SHARES);
    expect(segments.map((one) => [one.label, one.percent])).toEqual([
      ["Training", 45],
      ["Barriers", 15],
      ["Checkpoint stall", 10],
      ["Starting", 5],
      ["Recovering", 10],
      ["Lost work", 15],
    ]);
  });

  it("call what nobody measured by its name", () => {
    const unknown = { ...SHARES, training_s: null, barrier_s: null, checkpoint_s: null, unmeasured_s: 70 };
    const labels = segmentsOf(unknown).map((one) => one.label);
    expect(labels).not.toContain("Training");
    expect(labels).toContain("Not measured");
  });

  it("survive a task that has just begun", () => {
    expect(segmentsOf({ ...SHARES, wall_s: 0, starting_s: 0, recovering_s: 0, lost_s: 0, training_s: 0 })).toHaveLength(
      2,
    );
  });
});

describe("lanes", () => {
  it("share one timeline", () => {
    const first = attempt({ ended_at_ms: 11_000, working_at_ms: 3000, lost_s: 2, status: "recovering" });
    const second = attempt({ attempt: 2, started_at_ms: 12_000, working_at_ms: 14_000 });
    const [one, two] = lanesOf([first, second], 21_000);
    expect(one).toMatchObject({ start: 0, working: 10, lost: 40, end: 50, seconds: 10 });
    expect(two).toMatchObject({
      start: expect.closeTo(55),
      working: expect.closeTo(65),
      lost: 100,
      end: 100,
      seconds: 9,
    });
  });

  it("of an attempt without a step yet are all start", () => {
    const [lane] = lanesOf([attempt({})], 5000);
    expect(lane).toMatchObject({ start: 0, working: 100, end: 100 });
  });
});

describe("sizes", () => {
  it("name each change with what was said when the attempt before it ended", () => {
    const blocks = sizesOf(
      [
        attempt({ ended_at_ms: 3000, status: "recovering", reason: "host b is lost" }),
        attempt({ attempt: 2, size: 3, started_at_ms: 3000, ended_at_ms: 4000, reason: "rank 1 was killed" }),
        attempt({ attempt: 3, size: 3, started_at_ms: 4000, ended_at_ms: 5000, reason: "1 more slot is free" }),
        attempt({ attempt: 4, size: null, started_at_ms: 5000, ended_at_ms: 5000 }),
        attempt({ attempt: 5, size: 4, started_at_ms: 5000 }),
      ],
      9000,
    );
    expect(blocks.map((one) => [one.size, one.before, one.start, one.end])).toEqual([
      [4, null, 0, 25],
      [3, 4, 25, 37.5],
      [3, null, 37.5, 50],
      [4, 3, 50, 100],
    ]);
    expect(blocks[1]?.why).toBe("host b is lost");
    expect(sizesOf([], 9000)).toEqual([]);
  });
});
