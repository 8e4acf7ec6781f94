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

function mostCommon(values: readonly string[]): string | null {
  const count = (value: string) => values.filter((other) => other === value).length;
  const best = [...values].sort((a, b) => count(b) - count(a))[0];
  return best !== undefined && count(best) > 1 ? best : null;
}
