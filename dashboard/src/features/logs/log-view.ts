/** The lines of the ring that pass a filter, kept up to date line by line. Holds numbers, never copies of lines. */
import type { LogEntry } from "@/api/wire";
import type { LogRing } from "@/data/log-ring";
import { timeOf, weightOf } from "@/lib/logs";
import { matcher } from "@/lib/matcher";

export interface LogFilter {
  /** The least level shown; empty = all. */
  level: string;
  task: string;
  worker: string;
  search: string;
}

export function predicate(filter: LogFilter): (line: LogEntry) => boolean {
  const least = filter.level ? weightOf(filter.level) : 0;
  const text = matcher(filter.search);
  return (line) =>
    weightOf(line.level) >= least &&
    (!filter.task || line.task_id === filter.task) &&
    (!filter.worker || line.worker_id === filter.worker) &&
    text.test(line.message);
}

export class LogView {
  readonly #matches: number[] = [];
  readonly #test: (line: LogEntry) => boolean;
  #seen: number;
  #head = 0;
  #generation: number;

  constructor(
    readonly ring: LogRing,
    filter: LogFilter,
  ) {
    this.#test = predicate(filter);
    this.#seen = ring.first;
    this.#generation = ring.generation;
    this.update();
  }

  get length(): number {
    return this.#matches.length - this.#head;
  }

  at(index: number): LogEntry | undefined {
    const seq = this.#matches[this.#head + index];
    return seq === undefined ? undefined : this.ring.at(seq);
  }

  /** Takes new lines in, lets lines go that fell out of the ring. */
  update(): void {
    if (this.#generation !== this.ring.generation) {
      this.#generation = this.ring.generation;
      this.#matches.length = 0;
      this.#head = 0;
      this.#seen = this.ring.first;
    }
    for (let seq = Math.max(this.#seen, this.ring.first); seq < this.ring.next; seq += 1) {
      const line = this.ring.at(seq);
      if (line && this.#test(line)) this.#matches.push(seq);
    }
    this.#seen = this.ring.next;
    while ((this.#matches[this.#head] ?? Infinity) < this.ring.first) this.#head += 1;
    if (this.#head > 10_000) {
      this.#matches.splice(0, this.#head);
      this.#head = 0;
    }
  }

  indexOf(id: string): number {
    for (let i = this.length - 1; i >= 0; i -= 1) if (this.at(i)?.id === id) return i;
    return -1;
  }

  /** Index of the first line at or after a time. */
  indexAt(time: number): number {
    for (let i = 0; i < this.length; i += 1) {
      const line = this.at(i);
      if (line && timeOf(line) >= time) return i;
    }
    return this.length - 1;
  }

  /** Counts over time in equal slices: all lines, warnings, errors. */
  histogram(slices: number): { from: number; to: number; all: number[]; warn: number[]; error: number[] } {
    const [first, last] = [this.at(0), this.at(this.length - 1)];
    const from = first ? timeOf(first) : 0;
    const to = last ? Math.max(timeOf(last), from + 1) : 1;
    const zeros = () => new Array<number>(slices).fill(0);
    const out = { from, to, all: zeros(), warn: zeros(), error: zeros() };
    for (let i = 0; i < this.length; i += 1) {
      const line = this.at(i);
      if (!line) continue;
      const slot = Math.max(0, Math.min(slices - 1, Math.floor(((timeOf(line) - from) / (to - from)) * slices)));
      out.all[slot] = (out.all[slot] ?? 0) + 1;
      if (line.level === "error") out.error[slot] = (out.error[slot] ?? 0) + 1;
      else if (line.level === "warn") out.warn[slot] = (out.warn[slot] ?? 0) + 1;
    }
    return out;
  }
}
