/** Configs with dots instead of levels, as the run table and its filter name their values. Pure. */

export function flattenConfig(
  value: Readonly<Record<string, unknown>>,
  prefix = "",
  out: Map<string, unknown> = new Map(),
): Map<string, unknown> {
  for (const [key, item] of Object.entries(value)) {
    const nested = typeof item === "object" && item !== null && !Array.isArray(item);
    if (nested) flattenConfig(item as Record<string, unknown>, `${prefix}${key}.`, out);
    else out.set(prefix + key, item);
  }
  return out;
}

export function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
