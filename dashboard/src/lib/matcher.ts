/** Search text as a regular expression, or as plain text when it is none. */

export interface Matcher {
  test(text: string): boolean;
  /** Why the text is no regular expression; then it is searched as plain text. */
  problem: string | null;
}

export function matcher(search: string): Matcher {
  const plain = search.toLowerCase();
  if (!search) return { test: () => true, problem: null };
  try {
    const regex = new RegExp(search, "i");
    return { test: (text) => regex.test(text), problem: null };
  } catch (error) {
    const problem = error instanceof Error ? error.message : "not a regular expression";
    return { test: (text) => text.toLowerCase().includes(plain), problem };
  }
}
