/** Colours of runs: 10 hues × 4 dashes, chosen by a hash of the run's id, so a toggle or a reload never recolours. */

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

/** Remembers who has which style. A taken hue steps on to the next free one; plain lines go first, then dashes. */
export class StyleBook {
  readonly #slots = new Map<string, number>();
  readonly #taken = new Set<number>();

  /** Runs seen together are given styles in the order of their ids, whatever order they arrived in. */
  seat(runs: readonly string[]): void {
    for (const run of [...runs].sort()) this.of(run);
  }

  of(run: string): RunStyle {
    const known = this.#slots.get(run);
    if (known !== undefined) return styleAt(known);
    const slot = this.#free(hashText(run));
    this.#slots.set(run, slot);
    this.#taken.add(slot);
    return styleAt(slot);
  }

  #free(hash: number): number {
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

export const runStyles: StyleBook = new StyleBook();
