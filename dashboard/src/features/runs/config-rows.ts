/** Configs of several runs side by side. Pure. */
import { asText, flattenConfig } from "@/lib/flat-config";

export interface DiffRow {
  key: string;
  values: string[];
  differs: boolean;
  /** The value that most runs share; null when no value is shared. */
  usual: string | null;
}

/** Nested configs as dotted keys, one column per run; keys that differ first. */
export function diffConfigs(configs: readonly (Record<string, unknown> | null | undefined)[]): DiffRow[] {
  const flat = configs.map((config) => flattenConfig(config ?? {}));
  const keys = [...new Set(flat.flatMap((one) => [...one.keys()]))].sort();
  return keys
    .map((key) => {
      const values = flat.map((one) => (one.has(key) ? asText(one.get(key)) : "–"));
      return { key, values, differs: new Set(values).size > 1, usual: mostCommon(values) };
    })
    .sort((a, b) => Number(b.differs) - Number(a.differs));
}

/** The first of several that are as common. */
function mostCommon(values: readonly string[]): string | null {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  let best: string | null = null;
  let most = 1;
  for (const [value, count] of counts) {
    if (count > most) [best, most] = [value, count];
  }
  return best;
}
