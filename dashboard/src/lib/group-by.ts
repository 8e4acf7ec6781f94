/** Items by a key, in the order in which the keys first appear. */
export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const out = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const found = out.get(key);
    if (found) found.push(item);
    else out.set(key, [item]);
  }
  return out;
}
