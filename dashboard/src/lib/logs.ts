/** Order and levels of log lines. */
import type { LogEntry, LogLevel } from "@/api/wire";

export function timeOf(line: Pick<LogEntry, "timestamp" | "timestamp_ms">): number {
  return line.timestamp_ms ?? line.timestamp * 1000;
}

export function oldestFirst(lines: readonly LogEntry[]): LogEntry[] {
  return [...lines].sort((a, b) => timeOf(a) - timeOf(b));
}

export function newestFirst(lines: readonly LogEntry[]): LogEntry[] {
  return oldestFirst(lines).reverse();
}

const WEIGHTS: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Unknown levels count as info: a foreign logger's words must not hide its lines. */
export function weightOf(level: string): number {
  return WEIGHTS[level as LogLevel] ?? 1;
}
