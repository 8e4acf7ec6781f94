import fc from "fast-check";
import { expect, test } from "vitest";
import { SMOOTHING_KINDS } from "./smoothing";
import { DEFAULT_VIEW, decodeView, encodeView, METRIC_TABS, RANGES, type View, X_KINDS } from "./view-codec";

const views: fc.Arbitrary<View> = fc.record({
  demo: fc.boolean(),
  range: fc.constantFrom(...RANGES),
  runs: fc.option(fc.array(fc.string({ minLength: 1 }), { maxLength: 5 }), { nil: null }),
  x: fc.constantFrom(...X_KINDS),
  logX: fc.boolean(),
  logY: fc.boolean(),
  clip: fc.boolean(),
  smoothingKind: fc.constantFrom(...SMOOTHING_KINDS),
  formulas: fc.array(fc.string({ minLength: 1 }), { maxLength: 3 }),
  groupBy: fc.string(),
  baseline: fc.string(),
  smoothing: fc.integer({ min: 0, max: 999 }).map((n) => n / 1000),
  ranks: fc.constantFrom("mean" as const, "all" as const),
  attempts: fc.constantFrom("newest" as const, "all" as const),
  tab: fc.constantFrom(...METRIC_TABS),
  search: fc.string(),
  focus: fc.string(),
  zoom: fc.option(
    fc.tuple(fc.integer(), fc.integer({ min: 1, max: 1e9 })).map(([from, size]) => [from, from + size] as const),
    { nil: null },
  ),
  clusterTab: fc.constant("workers" as const),
  dataset: fc.constant(""),
  level: fc.constant(""),
  task: fc.constant(""),
  worker: fc.constant(""),
  logSearch: fc.constant(""),
  at: fc.constant(""),
  runFilter: fc.constant(""),
  runSort: fc.constant("-started"),
  runColumns: fc.constant(null),
});

test("any view of the metrics page survives the address bar", () => {
  fc.assert(
    fc.property(views, (view) => {
      expect(decodeView(encodeView(view, "metrics"), "metrics")).toEqual(view);
    }),
  );
});

test("defaults leave the address clean", () => {
  expect(encodeView(DEFAULT_VIEW, "metrics")).toBe("");
});

test("an empty choice of runs is not the default choice", () => {
  const none = encodeView({ ...DEFAULT_VIEW, runs: [] }, "runs");
  expect(none).toBe("?runs=");
  expect(decodeView(none, "runs").runs).toEqual([]);
  expect(decodeView("", "runs").runs).toBeNull();
});

test("the run table's filter, order and columns survive the address bar", () => {
  const view: View = {
    ...DEFAULT_VIEW,
    runFilter: 'lr > 1e-4 and tag:"a b"',
    runSort: "loss.min",
    runColumns: ["a,b", "c"],
  };
  expect(decodeView(encodeView(view, "runs"), "runs")).toEqual(view);
  expect(decodeView(encodeView({ ...view, runColumns: [] }, "runs"), "runs").runColumns).toEqual([]);
});

test("a page shows its own fields only, and keeps the others from before", () => {
  const view: View = { ...DEFAULT_VIEW, search: "loss", logSearch: "error", range: "1h" };
  expect(encodeView(view, "logs")).toBe("?t=1h&q=error");
  expect(decodeView("?t=6h&q=nan", "logs", view)).toMatchObject({ range: "6h", search: "loss", logSearch: "nan" });
});

test.each(["?t=2h", "?x=banana", "?sm=7", "?sm=", "?tab=", "?log=yes"])("%s falls back to the default", (search) => {
  expect(decodeView(search, "metrics")).toEqual(DEFAULT_VIEW);
});
