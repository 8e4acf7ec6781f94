import fc from "fast-check";
import { expect, test } from "vitest";
import { type Shelf, STYLE_COUNT, StyleBook, styleAt } from "./colors";

const ids = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: STYLE_COUNT });

test("up to forty runs never look the same", () => {
  fc.assert(
    fc.property(ids, (runs) => {
      const book = new StyleBook();
      book.seat(runs);
      const looks = runs.map((run) => JSON.stringify(book.of(run)));
      expect(new Set(looks).size).toBe(runs.length);
    }),
  );
});

/** A browser's storage. */
class Drawer implements Shelf {
  readonly kept = new Map<string, string>();
  getItem = (key: string) => this.kept.get(key) ?? null;
  setItem = (key: string, text: string) => void this.kept.set(key, text);
}

test("a run keeps its look when others come, and after a reload with any of them in any order", () => {
  fc.assert(
    fc.property(ids, ids, (runs, later) => {
      const drawer = new Drawer();
      const book = new StyleBook(drawer);
      book.seat(runs);
      const before = runs.map((run) => book.of(run));
      book.seat([...later, ...runs]);
      expect(runs.map((run) => book.of(run))).toEqual(before);
      const all = [...new Set([...later, ...runs])];
      const reloaded = new StyleBook(drawer);
      reloaded.seat([...all].reverse());
      // Beyond forty runs looks repeat, and then who is asked first matters.
      if (all.length <= STYLE_COUNT) expect(runs.map((run) => reloaded.of(run))).toEqual(before);
    }),
  );
});

test("the newest ten runs have plain lines", () => {
  const book = new StyleBook();
  const runs = Array.from({ length: 20 }, (_, i) => `run-${19 - i}`);
  book.seat(runs);
  expect(runs.slice(0, 10).every((run) => book.of(run).dash.length === 0)).toBe(true);
});

test("a shelf with rubbish on it is an empty one", () => {
  for (const rubbish of ["{", "[1]", '{"a":-1,"b":1.5,"c":"x","d":400}']) {
    const drawer = new Drawer();
    drawer.setItem("strata.styles", rubbish);
    const book = new StyleBook(drawer);
    book.seat(["a", "b", "c", "d"]);
    expect(new Set(["a", "b", "c", "d"].map((run) => JSON.stringify(book.of(run)))).size).toBe(4);
  }
});

function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

test("every line stands out 3:1 from the surface of its theme", () => {
  const contrast = (a: number, b: number) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  for (let slot = 0; slot < 10; slot += 1) {
    expect(contrast(luminance(styleAt(slot).light), luminance("#ffffff"))).toBeGreaterThan(3);
    expect(contrast(luminance(styleAt(slot).dark), luminance("#14171b"))).toBeGreaterThan(3);
  }
});
