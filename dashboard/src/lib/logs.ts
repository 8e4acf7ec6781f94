/** Order and levels of log lines. */
import type { LogEntry, LogLevel } from "@/api/wire";

export function timeOf(line: Pick<LogEntry, "timestamp" | "timestamp_ms">): number {
  return line.timestamp_ms ?? line.timestamp * 1000;
}

/** Whatever order they came in; lines of the same millisecond keep theirs, so a traceback stays readable. */
export function oldestFirst(lines: readonly LogEntry[]): LogEntry[] {
  const [first, last] = [lines[0], lines.at(-1)];
  const descending = first !== undefined && last !== undefined && timeOf(first) >= timeOf(last);
  const ascending = descending ? [...lines].reverse() : [...lines];
  return ascending.sort((a, b) => timeOf(a) - timeOf(b));
}

export function newestFirst(lines: readonly LogEntry[]): LogEntry[] {
  return oldestFirst(lines).reverse();
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
const ANSI = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007]*\u0007)/g;

/** What a terminal would show: no colour codes, and of a progress bar its last state. */
export function plainText(message: string): string {
  const text = message.includes("\u001b") ? message.replace(ANSI, "") : message;
  return text.includes("\r") ? (text.trimEnd().split("\r").at(-1) ?? text) : text;
}

const ID_TAIL = 11;

/** The end of an id tells workers apart, its beginning is the task's name. */
export function shortId(id: string): string {
  return id.length <= ID_TAIL + 3 ? id : `…${id.slice(-ID_TAIL)}`;
}

const LEVEL_WORDS: Record<string, LogLevel> = {
  DEBUG: "debug",
  INFO: "info",
  WARNING: "warn",
  ERROR: "error",
  CRITICAL: "error",
};

/** Python's loggers begin a line with its level, which has a column of its own here. */
export function messageOf(line: Pick<LogEntry, "level" | "message">): string {
  const text = plainText(line.message);
  const [word = ""] = text.split(/[\s:]/, 1);
  return LEVEL_WORDS[word] === line.level ? text.slice(word.length).replace(/^[\s:]+/, "") : text;
}

const WEIGHTS: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Unknown levels count as info: a foreign logger's words must not hide its lines. */
export function weightOf(level: string): number {
  return WEIGHTS[level as LogLevel] ?? 1;
}
