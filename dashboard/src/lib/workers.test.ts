import { expect, test } from "vitest";
import type { Barrier, Worker } from "@/api/wire";
import { missingNames, missingText } from "./workers";

const waitsFor = (missing: string[]) => ({ missing }) as Barrier;
const WORKERS = [{ id: "job-r1", rank: 1, last_heartbeat_ms: 1000 } as Worker];

test("who is missing at a barrier is named, with when it was last heard of", () => {
  const barrier = waitsFor(["job-r1", "gone"]);
  expect(missingNames(barrier, WORKERS)).toBe("rank 1 (job-r1), gone");
  expect(missingText(barrier, WORKERS, 4000)).toBe("rank 1 (job-r1), last heartbeat 3 s ago; gone");
  expect(missingText(waitsFor([]), WORKERS, 4000)).toBe("");
});

test("they stand in order of their ranks", () => {
  const workers = [2, 10, 11].map((rank) => ({ id: `job-${rank}`, rank }) as Worker);
  const names = missingNames(waitsFor(["job-10", "job-11", "job-2"]), workers);
  expect(names).toBe("rank 2 (job-2), rank 10 (job-10), rank 11 (job-11)");
});

test("of ten thousand the first are named and the others counted", () => {
  const barrier = waitsFor(Array.from({ length: 10_000 }, (_, rank) => `job-r${rank}`));
  const words = "rank 1 (job-r1), job-r0, job-r2, job-r3, job-r4, job-r5, job-r6, job-r7, and 9,992 more";
  expect(missingNames(barrier, WORKERS)).toBe(words);
});
