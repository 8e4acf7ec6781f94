/** Metric names → tabs by prefix. What matches nothing goes to Training. */
import { groupBy } from "./group-by";
import type { MetricTab } from "./view-codec";

export interface TabRule {
  prefix: string;
  tab: MetricTab;
}

const TABLE: readonly [MetricTab, string][] = [
  ["checkpoints", "checkpoint"],
  ["progress", "time_to_ progress/ tokens/ milestone"],
  ["model", "moe gsa mhc recurrence null router/ model/"],
  ["system", "sys. gpu cpu net"],
  ["training", "loss train/ val lr throughput/ token batch grad step_time"],
];

export const DEFAULT_RULES: readonly TabRule[] = TABLE.flatMap(([tab, words]) =>
  words.split(" ").map((prefix) => ({ prefix, tab })),
);
/** Ten thousand names ask: only rules that begin as a name does can be its own. */
const BY_LETTER = groupBy(DEFAULT_RULES, (rule) => rule.prefix.charAt(0));

/** The longest matching prefix wins, so `tokens/` beats `token`; the user's rules come before ours. */
export function tabOf(metric: string, own: readonly TabRule[] = []): MetricTab {
  return match(metric, own) ?? match(metric, BY_LETTER.get(metric.charAt(0)) ?? []) ?? "training";
}

function match(metric: string, rules: readonly TabRule[]): MetricTab | null {
  let best: TabRule | null = null;
  for (const rule of rules) {
    if (rule.prefix && metric.startsWith(rule.prefix) && rule.prefix.length > (best?.prefix.length ?? 0)) best = rule;
  }
  return best?.tab ?? null;
}

const ORDER = ["loss", "val", "throughput/", "lr", "grad", "step_time", "batch", "train/"];

/** Loss first: the order in which people look; then by name, numbers by their size. */
export function sortByInterest(names: readonly string[]): string[] {
  // Keys once per name: a collator's compare per pair takes 20 ms for a thousand names while the page opens.
  const keyed = names.map((name) => ({
    name,
    rank: rank(name),
    key: name.replace(/\d+/g, (n) => n.padStart(12, "0")),
  }));
  keyed.sort((a, b) => a.rank - b.rank || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return keyed.map(({ name }) => name);
}

function rank(metric: string): number {
  const found = ORDER.findIndex((prefix) => metric.startsWith(prefix));
  return found === -1 ? ORDER.length : found;
}

const UNITS: readonly (readonly [RegExp, string])[] = [
  [/bytes_per_s(ec)?$/, "B/s"],
  [/_bytes$/, "B"],
  [/(^|[._/])percent$|_percent$/, "%"],
  [/_ms$/, "ms"],
  [/_seconds$/, "s"],
];

/** The unit a series names, or the one its name gives away. */
export function unitOf(metric: string, unit: string): string {
  return unit || (UNITS.find(([pattern]) => pattern.test(metric))?.[1] ?? "");
}

const HEADLINES = ["loss", "throughput/", "grad", "step_time", "val", "lr"];

/** At most `count` training metrics that tell a run's story, one of each kind; then whatever else there is. */
export function headlines(names: readonly string[], count: number): string[] {
  const training = sortByInterest(names.filter((name) => tabOf(name) === "training"));
  const kinds = HEADLINES.flatMap((prefix) => training.find((name) => name.startsWith(prefix)) ?? []);
  return [...new Set([...kinds, ...training])].slice(0, count);
}

/** The heading a metric stands under: the part before the first slash, or the second word of sys.*. */
export function sectionOf(metric: string): string {
  if (metric.startsWith("sys.")) return metric.split(".")[1]?.replace(/_.*/, "") ?? "system";
  const cut = metric.indexOf("/");
  return cut > 0 ? metric.slice(0, cut) : "general";
}
