import { expect, test } from "vitest";
import type { Budget, Task } from "@/api/wire";
import {
  budgetFacts,
  canResume,
  canStop,
  excludedFacts,
  gpuFacts,
  hangFact,
  sizeFacts,
  spareFacts,
} from "./task-facts";

const fresh: Budget = {
  failures: 0,
  max_failures: 3,
  failures_in_a_row: 0,
  max_failures_in_a_row: 2,
  losses: 0,
  max_losses: 20,
  losses_in_all: 0,
  window_s: 21_600,
};

function words(change: Partial<Budget>): string[] {
  return budgetFacts({ budget: { ...fresh, ...change } } as Task).map(([, value]) => value);
}

test("budgets in words", () => {
  expect(words({})).toEqual(["0 of 3 restarts used", "none; 20 allowed within 6 h without a new checkpoint"]);
  expect(words({ failures: 2, failures_in_a_row: 1 })[0]).toBe(
    "2 of 3 restarts used, 1 in a row without a new checkpoint (2 allowed)",
  );
  expect(words({ failures: 4, failures_in_a_row: 1 })[0]).toMatch(/^all 3 restarts used, /);
  expect(words({ failures: 1, max_failures: 0 })[0]).toMatch(/^no restart allowed, /);
  expect(words({ losses_in_all: 1, losses: 1 })[1]).toBe(
    "1 kill from outside or lost host in all; 1 of 20 within 6 h without a new checkpoint",
  );
  expect(words({ losses_in_all: 7 })[1]).toMatch(/^7 kills from outside or lost hosts in all; 0 of 20 /);
  expect(budgetFacts({} as Task)).toEqual([]);
});

test("cards per rank in words", () => {
  expect(gpuFacts({ gpus_per_worker: 2 } as Task)).toEqual([["GPUs", "2 per rank"]]);
  expect(gpuFacts({ gpus_per_worker: 0 } as Task)).toEqual([]);
});

test("spares in words", () => {
  const words = (task: Partial<Task>) => spareFacts(task as Task);
  expect(words({ spares: 0, warm_spares: null })).toEqual([]);
  expect(words({})).toEqual([]);
  expect(words({ spares: 2, warm_spares: null })).toEqual([["Spares", "2 per host, none yet"]]);
  const some = { wanted: 4, warm: 3, memory_bytes: 96_000_000 };
  expect(words({ spares: 2, warm_spares: some })[0]?.[1]).toMatch(/^3 of 4 warm, [\d.]+ M.?B held$/);
  expect(words({ spares: 2, warm_spares: { ...some, warm: 0 } })).toEqual([["Spares", "0 of 4 warm"]]);
});

test("slow hosts that were left", () => {
  expect(excludedFacts({} as Task)).toEqual([]);
  expect(excludedFacts({ excluded_hosts: [] as string[] } as Task)).toEqual([]);
  expect(excludedFacts({ excluded_hosts: ["a", "b"] } as Task)).toEqual([["Slow hosts left", "a, b"]]);
});

test.each(["queued", "running", "recovering", "stopping", "completed", "failed", "stopped"] as const)(
  "%s: stopped or resumed, never both",
  (status) => {
    const task = { status } as Task;
    expect(canStop(task) && canResume(task)).toBe(false);
    expect(canResume(task)).toBe(status === "failed" || status === "stopped");
  },
);

test("what becomes of a rank that hangs", () => {
  const words = (hang_timeout_s: number | null) => hangFact({ hang_timeout_s } as Task);
  expect(words(90)).toBe("ended after 1m 30s without a step");
  expect(words(0)).toBe("never ended");
  expect(words(null)).toBe("ended after a time learned from their steps");
});

test("only an elastic task says how many ranks it has", () => {
  expect(sizeFacts({ size: 3, min_workers: 2, worker_count: 8 } as Task)).toEqual([
    ["Ranks", "3 now, 2 to 8 asked for"],
  ]);
  expect(sizeFacts({ size: null, min_workers: 2, worker_count: 8 } as Task)).toEqual([["Ranks", "2 to 8 asked for"]]);
  expect(sizeFacts({ size: 4, min_workers: 4, worker_count: 4 } as Task)).toEqual([]);
  expect(sizeFacts({ worker_count: 4 } as Task)).toEqual([]);
});
