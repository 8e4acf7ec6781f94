/** Colours of runs: 10 hues × 4 dashes, chosen by a hash of the run's id and kept: a toggle or a reload never recolours. */

export interface RunStyle {
  light: string;
  dark: string;
  dash: readonly number[];
}

/** Told apart under deuteranopia by lightness and hue, ≥ 3:1 on their theme's surface; red and green stay for states. */
const HUES: readonly (readonly [light: string, dark: string])[] = [
  ["#2f6fd6", "#6ea0f5"],
  ["#c75b12", "#f0924c"],
  ["#0f8576", "#3fbfae"],
  ["#b8438f", "#e07fc0"],
  ["#8f7200", "#d4b43c"],
  ["#7352cf", "#a78bfa"],
  ["#1583ad", "#56bde6"],
  ["#8d5a3b", "#cc9a74"],
  ["#55822a", "#9bc95f"],
  ["#a2466a", "#e493ae"],
];
const DASHES: readonly (readonly number[])[] = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

export const STYLE_COUNT: number = HUES.length * DASHES.length;

/** FNV-1a with a final mix: ids that differ in one digit must not land side by side. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 12;
  return hash >>> 0;
}

export function styleAt(slot: number): RunStyle {
  const [light, dark] = HUES[slot % HUES.length] ?? ["#2f6fd6", "#6ea0f5"];
  const dash = DASHES[Math.floor(slot / HUES.length) % DASHES.length] ?? [];
  return { light, dark, dash };
}

export function dashAt(place: number): readonly number[] {
  return DASHES[place % DASHES.length] ?? [];
}

/** Where styles outlive a reload; localStorage in the page. */
export type Shelf = Pick<Storage, "getItem" | "setItem">;

const KEY = "strata.styles";
const REMEMBERED = 500;

/**
 * Remembers who has which style. A taken hue steps on to the next free one; plain lines go first, then dashes. Without a
 * shelf, or for runs this browser never saw, those seated first, the newest, get the plain lines.
 */
export class StyleBook {
  readonly #slots = new Map<string, number>();
  readonly #taken = new Set<number>();
  readonly #known: Map<string, number>;

  constructor(readonly shelf: Shelf | null = null) {
    this.#known = recall(shelf);
  }

  /** Gives styles to runs in their order, the most important ones first; who has one keeps it. */
  seat(runs: readonly string[]): void {
    const fresh = runs.filter((run) => !this.#slots.has(run));
    if (fresh.length === 0) return;
    for (const run of fresh) {
      const slot = this.#known.get(run);
      if (slot !== undefined && !this.#taken.has(slot)) this.#give(run, slot);
    }
    for (const run of fresh) this.of(run);
    this.#save(runs);
  }

  of(run: string): RunStyle {
    const known = this.#slots.get(run);
    if (known !== undefined) return styleAt(known);
    return styleAt(this.#give(run, this.#free(hashText(run))));
  }

  #give(run: string, slot: number): number {
    this.#slots.set(run, slot);
    this.#taken.add(slot);
    return slot;
  }

  #save(runs: readonly string[]): void {
    const saved = runs.slice(0, REMEMBERED).map((run) => [run, this.#slots.get(run)]);
    try {
      this.shelf?.setItem(KEY, JSON.stringify(Object.fromEntries(saved)));
    } catch {
      // A full or forbidden storage: styles last as long as the page.
    }
  }

  #free(hash: number): number {
    if (this.#taken.size >= STYLE_COUNT) return hash % STYLE_COUNT;
    const hue = hash % HUES.length;
    for (let dash = 0; dash < DASHES.length; dash += 1) {
      for (let step = 0; step < HUES.length; step += 1) {
        const slot = dash * HUES.length + ((hue + step) % HUES.length);
        if (!this.#taken.has(slot)) return slot;
      }
    }
    return hash % STYLE_COUNT;
  }
}

function recall(shelf: Shelf | null): Map<string, number> {
  try {
    const saved = JSON.parse(shelf?.getItem(KEY) ?? "{}") as Record<string, number>;
    return new Map(
      Object.entries(saved).filter(([, slot]) => Number.isInteger(slot) && slot >= 0 && slot < STYLE_COUNT),
    );
  } catch {
    return new Map();
  }
}

export const runStyles: StyleBook = new StyleBook(typeof localStorage === "undefined" ? null : localStorage);

/** Groups of runs take no colour from runs. */
export const groupStyles: StyleBook = new StyleBook();
