/** An axis for whatever runs have in a column: numbers by size, linear or logarithmic, words by their names. Pure. */
import { logSplits, yTicks } from "@/components/chart/axis";
import { asText } from "@/lib/flat-config";
import { linearTicks, scaleOf } from "@/lib/scale";
import { isNumber } from "@/lib/stats";

export interface Axis {
  /** From 0 to 1; null for a value that has no place: unknown, NaN, or not above zero on a log axis. */
  place(value: unknown): number | null;
  ticks: { at: number; label: string }[];
}

const TICKS = 5;
const MOST_WORDS = 30;

export function axisFor(values: readonly unknown[], log = false): Axis {
  const known = values.filter((value) => value !== null && value !== undefined && value !== "NaN");
  return known.every((value) => typeof value === "number") ? numbers(known.filter(isNumber), log) : words(known);
}

function numbers(values: readonly number[], log: boolean): Axis {
  const usable = log ? values.filter((value) => value > 0) : values;
  if (usable.length === 0) return { place: () => null, ticks: [] };
  const range = padded(Math.min(...usable), Math.max(...usable), log);
  const scale = scaleOf(range, 0, 1, log);
  const ticks = log ? logSplits(...range) : linearTicks(range, TICKS);
  const labels = yTicks(ticks);
  return {
    place: (value) => (isNumber(value) && (!log || value > 0) ? scale(value) : null),
    ticks: ticks.map((value, i) => ({ at: scale(value), label: labels[i] ?? "" })),
  };
}

function padded(low: number, high: number, log: boolean): [number, number] {
  if (log) return low === high ? [low / 2, high * 2] : [low / 1.2, high * 1.2];
  const pad = high === low ? Math.abs(high) * 0.1 || 1 : (high - low) * 0.06;
  return [low - pad, high + pad];
}

function words(values: readonly unknown[]): Axis {
  const names = [...new Set(values.map(asText))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const places = new Map(names.map((name, i) => [name, (i + 0.5) / names.length]));
  const step = Math.ceil(names.length / MOST_WORDS);
  return {
    place: (value) => (value === null || value === undefined ? null : (places.get(asText(value)) ?? null)),
    ticks: names.filter((_, i) => i % step === 0).map((name) => ({ at: places.get(name) ?? 0, label: name })),
  };
}
