import fc from "fast-check";
import { expect, test } from "vitest";
import {
  addPanel,
  addSection,
  freeId,
  fromWire,
  KINDS,
  type Layout,
  movePanel,
  newPanel,
  nudgePanel,
  panelsOf,
  placeOf,
  removePanel,
  removeSection,
  resizePanel,
  toWire,
} from "./layout";

const EMPTY: Layout = { sections: [], runs: null, group_by: "", baseline: "" };
const section = (ids: string) => ({ title: ids, folded: false, panels: [...ids].map((id) => newPanel("number", id)) });
const of = (...ids: string[]): Layout => ({ ...EMPTY, sections: ids.map(section) });
const shape = (layout: Layout) => layout.sections.map((one) => one.panels.map((panel) => panel.id).join(""));

test("a panel moves within its section and into another", () => {
  const layout = of("abc", "xy");
  expect(shape(movePanel(layout, "a", { section: 0, index: 3 }))).toEqual(["bca", "xy"]);
  expect(shape(movePanel(layout, "c", { section: 0, index: 0 }))).toEqual(["cab", "xy"]);
  expect(shape(movePanel(layout, "b", { section: 1, index: 1 }))).toEqual(["ac", "xby"]);
  expect(shape(movePanel(layout, "gone", { section: 1, index: 0 }))).toEqual(["abc", "xy"]);
});

test("keys move it in reading order, over the edges of sections, and stop at the ends", () => {
  const layout = of("ab", "x");
  expect(shape(nudgePanel(layout, "a", 1))).toEqual(["ba", "x"]);
  expect(shape(nudgePanel(layout, "b", 1))).toEqual(["a", "bx"]);
  expect(shape(nudgePanel(layout, "x", -1))).toEqual(["abx", ""]);
  expect(shape(nudgePanel(layout, "a", -1))).toEqual(["ab", "x"]);
  expect(shape(nudgePanel(layout, "x", 1))).toEqual(["ab", "x"]);
});

test("whatever is moved, no panel is lost or doubled", () => {
  const moves = fc.array(fc.tuple(fc.constantFrom(..."abcxy"), fc.nat({ max: 2 }), fc.nat({ max: 5 }), fc.boolean()));
  fc.assert(
    fc.property(moves, (list) => {
      const end = list.reduce(
        (layout, [id, at, index, key]) =>
          key ? nudgePanel(layout, id, index % 2 ? 1 : -1) : movePanel(layout, id, { section: at % 2, index }),
        of("abc", "xy"),
      );
      expect(
        panelsOf(end)
          .map((panel) => panel.id)
          .sort(),
      ).toEqual([..."abcxy"]);
    }),
  );
});

test("a size stays on the grid", () => {
  const [panel] = panelsOf(resizePanel(of("a"), "a", 99.6, -3));
  expect([panel?.w, panel?.h]).toEqual([12, 1]);
});

test("a section that goes leaves its panels to its neighbour; the last one goes only when it is empty", () => {
  expect(shape(removeSection(of("ab", "x"), 1))).toEqual(["abx"]);
  expect(shape(removeSection(of("ab", "x"), 0))).toEqual(["abx"]);
  expect(shape(removeSection(of("ab"), 0))).toEqual(["ab"]);
  expect(shape(removeSection(of(""), 0))).toEqual([]);
});

test("panels are added where there is no section yet, with an id that nobody has", () => {
  const layout = addPanel(EMPTY, newPanel("line", "p1"));
  expect(shape(layout)).toEqual(["p1"]);
  expect(freeId(layout)).toBe("p2");
  expect(freeId(addPanel(removePanel(addPanel(layout, newPanel("bar", "p2")), "p1"), newPanel("bar", "p3")))).toBe(
    "p4",
  );
  expect(placeOf(addSection(layout), "p1")).toEqual({ section: 0, index: 0 });
});

test("what a saved one leaves out has its default, and every kind goes there and back", () => {
  const wire = { sections: [{ panels: KINDS.map((kind) => ({ kind, id: kind })) }] } as Parameters<typeof fromWire>[0];
  const layout = fromWire(wire);
  expect(panelsOf(layout)).toEqual(KINDS.map((kind) => newPanel(kind, kind)));
  expect(fromWire(toWire(layout))).toEqual(layout);
  expect(fromWire({})).toEqual(EMPTY);
});
