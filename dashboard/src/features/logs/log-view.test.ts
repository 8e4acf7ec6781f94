import fc from "fast-check";
import { expect, test } from "vitest";
import type { LogEntry } from "@/api/wire";
import { LogRing } from "@/data/log-ring";
import { LINE } from "@/testing/records";
import { type LogFilter, LogView, predicate } from "./log-view";

const FILTER: LogFilter = { level: "", task: "", worker: "", search: "" };
const LEVELS = ["debug", "info", "warn", "error"] as const;

function line(n: number): LogEntry {
  return {
    ...LINE,
    id: `${n}`,
    timestamp: n,
    timestamp_ms: n * 1000,
    level: LEVELS[n % 4] ?? "info",
    message: `line ${n}`,
    task_id: `t${n % 2}`,
    worker_id: `w${n % 3}`,
  };
}

test("kept up to date line by line, it shows what a fresh view would", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 10 }),
      fc.constantFrom("", "warn", "error"),
      (batches, level) => {
        const ring = new LogRing(40);
        const view = new LogView(ring, { ...FILTER, level });
        let n = 0;
        for (const size of batches) {
          ring.push(Array.from({ length: size }, () => line(n++)));
          view.update();
        }
        const fresh = new LogView(ring, { ...FILTER, level });
        const ids = (it: LogView) => Array.from({ length: it.length }, (_, i) => it.at(i)?.id);
        expect(ids(view)).toEqual(ids(fresh));
      },
    ),
  );
});

test("level is the least one shown; task, worker and text narrow further", () => {
  const pass = (filter: Partial<LogFilter>) =>
    [0, 1, 2, 3, 4, 5].filter((n) => predicate({ ...FILTER, ...filter })(line(n)));
  expect(pass({ level: "warn" })).toEqual([2, 3]);
  expect(pass({ task: "t1" })).toEqual([1, 3, 5]);
  expect(pass({ worker: "w0" })).toEqual([0, 3]);
  expect(pass({ search: "line [45]" })).toEqual([4, 5]);
});

test("older lines put before are seen, and a line is found by its id", () => {
  const ring = new LogRing(40);
  ring.push([line(10), line(11)]);
  const view = new LogView(ring, FILTER);
  ring.prepend([line(8), line(9)]);
  view.update();
  expect(view.length).toBe(4);
  expect(view.indexOf("9")).toBe(1);
  expect(view.indexAt(10_000)).toBe(2);
  expect(view.histogram(4).all.reduce((sum, count) => sum + count, 0)).toBe(4);
});
