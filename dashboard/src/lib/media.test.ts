import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareCells, histogramOf, itemsOf, placeOf, stripOf, type TableCell, tableOf, unionOf } from "./media";

const NAME = `${"a".repeat(64)}.png`;

describe("texts of media", () => {
  it("reads items and refuses names that are no file of a run", () => {
    const [item, odd] = itemsOf(JSON.stringify({ items: [{ file: NAME, caption: "x" }, { file: "../../token" }] }));
    expect([item?.file, item?.caption, odd?.file]).toEqual([NAME, "x", null]);
  });

  it("reads anything without an error", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        itemsOf(text);
        histogramOf(text);
        stripOf([histogramOf(text)], 8);
      }),
    );
    fc.assert(fc.property(fc.jsonValue(), (value) => void tableOf(value)));
  });

  it("takes no histogram whose edges do not rise", () => {
    expect(histogramOf('{"counts": [1], "bins": [0, 1]}')).toEqual({ counts: [1], bins: [0, 1], bad: 0 });
    expect(histogramOf('{"counts": [1], "bins": [1, 1]}')).toBeNull();
    expect(histogramOf('{"counts": [1], "bins": ["NaN", 1]}')).toBeNull();
    expect(histogramOf('{"counts": [], "bins": [0]}')).toBeNull();
  });

  it("reads cells with files, and what is missing", () => {
    const table = tableOf({ columns: ["a", "p"], data: [[1, { kind: "image", file: NAME }], [{ x: 1 }]], rows: 9 });
    expect(table?.rows).toBe(9);
    expect(table?.data[0]?.[1]).toMatchObject({ kind: "image", item: { file: NAME } });
    expect(table?.data[1]).toEqual(['{"x":1}', null]);
  });
});

describe("strips", () => {
  it("keep all values, whatever bins they came in", () => {
    const edges = fc.uniqueArray(fc.integer({ min: -1000, max: 1000 }), { minLength: 2, maxLength: 20 });
    fc.assert(
      fc.property(edges, (unsorted) => {
        const bins = [...unsorted].sort((a, b) => a - b);
        const strip = stripOf([{ bins, counts: bins.slice(1).map((_, i) => i + 1), bad: 0 }], 16);
        const shares = strip?.shares[0] ?? [];
        expect(Math.max(...shares)).toBeCloseTo(1);
        expect([strip?.low, strip?.high]).toEqual([bins[0], bins.at(-1)]);
      }),
    );
    const flat = stripOf([{ bins: [0, 1], counts: [8], bad: 0 }, null, { bins: [1, 2], counts: [4], bad: 0 }], 2);
    expect(flat?.shares).toEqual([[1, 0], [], [0, 1]]);
  });
});

describe("steps", () => {
  it("are found at or before", () => {
    expect([0, 5, 7, 10, 99].map((step) => placeOf([5, 10], step))).toEqual([0, 0, 0, 1, 1]);
    expect(placeOf([], 3)).toBe(-1);
    expect(
      unionOf([
        [1, 3],
        [2, 3],
      ]),
    ).toEqual([1, 2, 3]);
  });
});

it("sorts numbers before texts, and nothing last both ways", () => {
  const cells: TableCell[] = ["b", 10, null, 9, "a10", "a9", true];
  const sorted = (down: boolean) => [...cells].sort((a, b) => compareCells(a, b, down));
  expect(sorted(false)).toEqual([9, 10, true, "a9", "a10", "b", null]);
  expect(sorted(true)).toEqual([10, 9, true, "b", "a10", "a9", null]);
});
