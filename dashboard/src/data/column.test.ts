import fc from "fast-check";
import { expect, test } from "vitest";
import { Column } from "./column";

const near = fc.integer({ min: -200, max: 200 });
const number = fc.oneof(
  near,
  near.map((step) => 1_790_000_000_000 + step * 1000),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true }),
  fc.constantFrom(-0, 0, 2 ** 31, -(2 ** 31), 2 ** 53, Infinity),
  fc.constant(null),
);
const change = fc.oneof(
  fc.record({ push: number }),
  fc.record({ at: fc.nat(), set: number }),
  fc.record({ truncate: fc.nat(20) }),
);

test("a column holds what an array would hold, whatever comes in whatever order", () => {
  fc.assert(
    fc.property(fc.array(number, { maxLength: 40 }), fc.array(change, { maxLength: 80 }), (first, changes) => {
      const [column, model] = [new Column<number | null>(first), [...first]];
      for (const one of changes) {
        if ("push" in one) {
          column.push(one.push);
          model.push(one.push);
        } else if ("set" in one) {
          if (model.length === 0) continue;
          column.set(one.at % model.length, one.set);
          model[one.at % model.length] = one.set;
        } else {
          column.truncate(one.truncate);
          model.length = Math.min(model.length, one.truncate);
        }
      }
      expect([...column]).toEqual(model);
      expect(column.slice(-5)).toEqual(model.slice(-5));
      for (const place of [0, -1, model.length, -model.length - 1]) expect(column.at(place)).toBe(model.at(place));
    }),
  );
});
