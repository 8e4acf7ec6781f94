import fc from "fast-check";
import { expect, test } from "vitest";
import { diffConfigs } from "./config-rows";

test("keys that differ come first, with the value that most runs share", () => {
  const rows = diffConfigs([
    { lr: 0.1, model: { depth: 2, name: "mlp" } },
    { lr: 0.1, model: { depth: 4, name: "mlp" }, seed: 7 },
    { lr: 0.1, model: { depth: 2, name: "mlp" } },
  ]);
  expect(rows.map((row) => [row.key, row.differs, row.usual])).toEqual([
    ["model.depth", true, "2"],
    ["seed", true, "–"],
    ["lr", false, "0.1"],
    ["model.name", false, "mlp"],
  ]);
  expect(rows[0]?.values).toEqual(["2", "4", "2"]);
});

test("a run without a config is a column of dashes", () => {
  expect(diffConfigs([null, { lr: 1 }])).toEqual([{ key: "lr", values: ["–", "1"], differs: true, usual: null }]);
  expect(diffConfigs([undefined, {}])).toEqual([]);
});

test("of values that are as common the first is the usual one; one that is there once is not", () => {
  const letters = fc.array(fc.constantFrom("a", "b", "c", "d", "e"), { maxLength: 12 });
  fc.assert(
    fc.property(letters, (values) => {
      const times = (value: string) => values.filter((other) => other === value).length;
      const most = Math.max(...values.map(times));
      const usual = most > 1 ? values.find((value) => times(value) === most) : null;
      expect(diffConfigs(values.map((of) => ({ of }))).map((row) => row.usual)).toEqual(values.length ? [usual] : []);
    }),
  );
});
