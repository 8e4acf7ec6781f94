/** The newest log lines, bounded. A line keeps its sequence number for life, so views can hold numbers, not lines. */
import type { LogEntry } from "@/api/wire";
import { timeOf } from "@/lib/logs";

type Listener = () => void;

export class LogRing {
  readonly #lines: (LogEntry | undefined)[] = [];
  readonly #ids = new Set<string>();
  readonly #listeners = new Set<Listener>();
  #first = 0;
  #next = 0;
  #version = 0;
  #generation = 0;
  #skipped = 0;

  constructor(readonly capacity: number = 50_000) {}

  /** Sequence number of the oldest line kept. */
  get first(): number {
    return this.#first;
  }

  /** One past the newest. */
  get next(): number {
    return this.#next;
  }

  /** Number of lines that fell out at the old end. */
  get dropped(): number {
    return this.#first;
  }

  /** Number of lines that came too fast to be sent here. */
  get skipped(): number {
    return this.#skipped;
  }

  at(seq: number): LogEntry | undefined {
    return seq < this.#first || seq >= this.#next ? undefined : this.#lines[seq % this.capacity];
  }

  /** Appends lines that are not there yet; ids make a replay harmless. */
  push(lines: readonly LogEntry[]): number {
    let added = 0;
    for (const line of lines) {
      if (this.#ids.has(line.id)) continue;
      this.#put(line);
      added += 1;
    }
    if (added > 0) this.#changed();
    return added;
  }

  skip(count: number): void {
    this.#skipped += count;
    if (count > 0) this.#changed();
  }

  /** Takes a backlog that was asked for: live lines may have come before its answer, so each goes to its own time. */
  merge(lines: readonly LogEntry[]): number {
    const fresh = lines.filter((line) => !this.#ids.has(line.id));
    const newest = this.at(this.#next - 1);
    if (!newest || fresh.every((line) => timeOf(line) >= timeOf(newest))) return this.push(fresh);
    const all = [...this.#kept(), ...fresh].sort((a, b) => timeOf(a) - timeOf(b));
    this.#restart();
    for (const line of all) this.#put(line);
    this.#changed();
    return fresh.length;
  }

  /** Puts older lines before the oldest one, as far as there is room. The sequence numbers start anew. */
  prepend(lines: readonly LogEntry[]): number {
    const kept = this.#kept();
    const room = this.capacity - kept.length;
    const fresh = room > 0 ? lines.filter((line) => !this.#ids.has(line.id)).slice(-room) : [];
    if (fresh.length === 0) return 0;
    this.#restart();
    for (const line of [...fresh, ...kept]) this.#put(line);
    this.#changed();
    return fresh.length;
  }

  /** Rises when sequence numbers start anew: whoever holds some must begin again. */
  get generation(): number {
    return this.#generation;
  }

  clear(): void {
    this.#restart();
    this.#skipped = 0;
    this.#changed();
  }

  version = (): number => this.#version;

  subscribe = (listener: Listener): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #kept(): LogEntry[] {
    const kept: LogEntry[] = [];
    for (let seq = this.#first; seq < this.#next; seq += 1) {
      const line = this.at(seq);
      if (line) kept.push(line);
    }
    return kept;
  }

  #restart(): void {
    this.#lines.length = 0;
    this.#ids.clear();
    this.#first = 0;
    this.#next = 0;
    this.#generation += 1;
  }

  #put(line: LogEntry): void {
    if (this.#next - this.#first === this.capacity) {
      const oldest = this.#lines[this.#first % this.capacity];
      if (oldest) this.#ids.delete(oldest.id);
      this.#first += 1;
    }
    this.#lines[this.#next % this.capacity] = line;
    this.#ids.add(line.id);
    this.#next += 1;
  }

  #changed(): void {
    this.#version += 1;
    for (const listener of this.#listeners) listener();
  }
}

export const logRing: LogRing = new LogRing();
