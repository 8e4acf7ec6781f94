import fc from "fast-check";
import { expect, test } from "vitest";
import { STYLE_COUNT, StyleBook, styleAt } from "./colors";

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

test("the order of arrival does not matter, and nothing changes later", () => {
  fc.assert(
    fc.property(ids, ids, (runs, later) => {
      const [a, b] = [new StyleBook(), new StyleBook()];
      a.seat(runs);
      b.seat([...runs].reverse());
      const before = runs.map((run) => a.of(run));
      a.seat(later);
      expect(runs.map((run) => a.of(run))).toEqual(before);
      expect(runs.map((run) => b.of(run))).toEqual(before);
    }),
  );
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
