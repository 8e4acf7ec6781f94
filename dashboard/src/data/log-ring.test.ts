import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { LogEntry } from "@/api/wire";
import { LINE } from "@/testing/records";
import { LogRing } from "./log-ring";

const line = (n: number): LogEntry => ({
  ...LINE,
  id: `log_${n}`,
  timestamp: n,
  timestamp_ms: n * 1000,
  message: `line ${n}`,
});

function all(ring: LogRing): string[] {
  const out: string[] = [];
  for (let seq = ring.first; seq < ring.next; seq += 1) out.push(ring.at(seq)?.id ?? "?");
  return out;
}

test("holds the newest lines, each once, in order", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      fc.array(fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 12 }), { maxLength: 12 }),
      (capacity, batches) => {
        const ring = new LogRing(capacity);
        const model: string[] = [];
        for (const batch of batches) {
          ring.push(batch.map(line));
          for (const n of batch) {
            if (!model.slice(-capacity).includes(`log_${n}`)) model.push(`log_${n}`);
          }
        }
        expect(all(ring)).toEqual(model.slice(-capacity));
        expect(ring.dropped).toBe(Math.max(0, model.length - capacity));
      },
    ),
  );
});

test("a line keeps its number for life", () => {
  const ring = new LogRing(3);
  ring.push([1, 2, 3].map(line));
  expect(ring.at(2)?.id).toBe("log_3");
  ring.push([line(4)]);
  expect(ring.at(2)?.id).toBe("log_3");
  expect(ring.at(0)).toBeUndefined();
});

test("older lines go before, as far as there is room, and say that numbers began anew", () => {
  const ring = new LogRing(4);
  ring.push([3, 4].map(line));
  const before = ring.generation;
  expect(ring.prepend([0, 1, 2].map(line))).toBe(2);
  expect(all(ring)).toEqual(["log_1", "log_2", "log_3", "log_4"]);
  expect(ring.generation).toBeGreaterThan(before);
  expect(ring.prepend([line(0)])).toBe(0);
});

test("listeners hear of news, not of repeats", () => {
  const ring = new LogRing();
  const heard = vi.fn();
  ring.subscribe(heard);
  ring.push([line(1)]);
  ring.push([line(1)]);
  expect(heard).toHaveBeenCalledTimes(1);
});

test("a backlog that answers after live lines have come takes its place before them", () => {
  const ring = new LogRing(100);
  ring.push([line(7), line(8)]);
  expect(ring.merge([line(1), line(2), line(7)])).toBe(2);
  expect(all(ring)).toEqual(["log_1", "log_2", "log_7", "log_8"]);
  ring.merge([line(9)]);
  expect(all(ring).at(-1)).toBe("log_9");
});

test("lines that were not sent are counted, and told", () => {
  const ring = new LogRing();
  const heard = vi.fn();
  ring.subscribe(heard);
  ring.skip(0);
  expect(heard).not.toHaveBeenCalled();
  ring.skip(7);
  ring.skip(5);
  expect([ring.skipped, heard.mock.calls.length]).toEqual([12, 2]);
  ring.clear();
  expect(ring.skipped).toBe(0);
});
