import fc from "fast-check";
import { expect, test } from "vitest";
import { alignMean, type Buckets, bucketize, bucketWidth, type Columns, unionIndex } from "./buckets";

function columnsOf(points: readonly (readonly [step: number, value: number | null])[]): Columns {
  const values = points.map(([, value]) => value);
  return {
    steps: points.map(([step]) => step),
    times: points.map((_, i) => 1000 + i),
    values,
    min: values,
    max: values,
    bad: values.map((value) => (value === null ? 1 : 0)),
  };
}

function cut(points: readonly (readonly [number, number | null])[], width: number): Buckets {
  const columns = columnsOf(points);
  return bucketize(columns, { x: columns.steps, width, rewinds: true });
}

const ascending = fc
  .array(
    fc.tuple(
      fc.integer({ min: 1, max: 5 }),
      fc.option(fc.double({ min: -100, max: 100, noNaN: true }), { nil: null, freq: 6 }),
    ),
    {
      minLength: 1,
      maxLength: 200,
    },
  )
  .map((gaps) => {
    let step = 0;
    return gaps.map(([gap, value]) => {
      step += gap;
      return [step, value] as const;
    });
  });

test("width is a power of two that keeps within the limit", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e9 }), fc.integer({ min: 1, max: 4000 }), (span, limit) => {
      const width = bucketWidth(span, limit);
      expect(Number.isInteger(Math.log2(width))).toBe(true);
      expect(span / width).toBeLessThanOrEqual(limit);
      if (width > 1) expect(span / (width / 2)).toBeGreaterThan(limit);
    }),
  );
  expect(bucketWidth(0, 100)).toBe(1);
});

test("extremes and NaN counts are exact at any width", () => {
  fc.assert(
    fc.property(ascending, fc.integer({ min: 0, max: 8 }), (points, power) => {
      const out = cut(points, 2 ** power);
      const known = points.flatMap(([, value]) => (value === null ? [] : [value]));
      expect(out.bad.reduce((sum, count) => sum + count, 0)).toBe(points.length - known.length);
      expect(out.count.reduce((sum, count) => sum + count, 0)).toBe(known.length);
      if (known.length > 0) {
        expect(Math.min(...out.min)).toBe(Math.min(...known));
        expect(Math.max(...out.max)).toBe(Math.max(...known));
      }
    }),
  );
});

test("a point that stands for several brings its extremes, not only its mean", () => {
  const columns = {
    ...columnsOf([
      [1, 5],
      [2, 6],
    ]),
    min: [-9, 6],
    max: [5, 80],
  };
  const { min, max } = bucketize(columns, { x: columns.steps, width: 4, rewinds: true });
  expect([min, max]).toEqual([[-9], [80]]);
});

test("new points never change old buckets", () => {
  fc.assert(
    fc.property(ascending, fc.integer({ min: 1, max: 199 }), (points, at) => {
      const before = cut(points.slice(0, at), 4);
      const after = cut(points, 4);
      const settled = before.index.length - 1;
      expect(after.index.slice(0, settled)).toEqual(before.index.slice(0, settled));
      expect(after.sum.slice(0, settled)).toEqual(before.sum.slice(0, settled));
    }),
  );
});

test("x is strictly ascending, whatever the order of the points", () => {
  const any = fc.array(fc.tuple(fc.integer({ min: 0, max: 300 }), fc.constant(1)), { minLength: 1, maxLength: 100 });
  fc.assert(
    fc.property(any, (points) => {
      const { index } = cut(points, 2);
      for (let i = 1; i < index.length; i += 1) expect(index[i]).toBeGreaterThan(index[i - 1] as number);
    }),
  );
});

test("after a restart the re-done steps replace the first try", () => {
  const first = Array.from({ length: 100 }, (_, i) => [i + 1, 1] as const);
  const again = Array.from({ length: 20 }, (_, i) => [i + 51, 2] as const);
  const out = cut([...first, ...again], 1);
  expect(out.index.at(-1)).toBe(70);
  expect(out.sum[49]).toBe(1);
  expect(out.sum[50]).toBe(2);
});

test("a late point of a parallel writer is put in its place", () => {
  const out = cut(
    [
      [1, 10],
      [2, 20],
      [4, 40],
      [3, 30],
    ],
    1,
  );
  expect(out.index).toEqual([1, 2, 3, 4]);
  expect(out.sum).toEqual([10, 20, 30, 40]);
});

test("aligned series share x; ranks are averaged, holes are told from NaN", () => {
  const a = cut(
    [
      [1, 1],
      [2, null],
      [3, 3],
    ],
    1,
  );
  const b = cut(
    [
      [1, 3],
      [4, 4],
    ],
    1,
  );
  const shared = unionIndex([a, b]);
  expect(shared).toEqual([1, 2, 3, 4]);
  const mean = alignMean(shared, [a, b]);
  expect(mean.y).toEqual([2, null, 3, 4]);
  expect([mean.min[0], mean.max[0]]).toEqual([1, 3]);
  const alone = alignMean(shared, [b]);
  expect(alone.y).toEqual([3, undefined, undefined, 4]);
  expect(mean.bad).toEqual([0, 1, 0, 0]);
});
