// @vitest-environment happy-dom
import { beforeEach, expect, test } from "vitest";
import type { SavedDashboard } from "@/api/wire";
import {
  afterSave,
  currentOf,
  edit,
  forget,
  isChanged,
  openDefault,
  openSaved,
  show,
  useBoards,
  zoomTo,
} from "./boards";
import { addSection, type Layout } from "./layout";

const saved = (id: string, version: number): SavedDashboard => ({
  ...{ id, version, name: id, project: "", author: "me", updated_at_ms: 0 },
  layout: { sections: [{ title: `v${version}`, panels: [] }] },
});
const LAYOUT: Layout = { sections: [], runs: null, group_by: "", baseline: "" };
const titles = () => currentOf(useBoards.getState())?.layout.sections.map((section) => section.title);

beforeEach(() => useBoards.setState({ current: "", boards: {}, zooms: {} }));

test("changes outlive a look at another dashboard, and a newer version on the server", () => {
  openSaved(saved("a", 1));
  openSaved(saved("b", 1));
  show("a");
  edit(addSection);
  show("b");
  show("a");
  openSaved(saved("a", 2));
  expect(titles()).toEqual(["v1", "Section 2"]);
  expect(isChanged(currentOf(useBoards.getState()))).toBe(true);
  openSaved(saved("a", 2), true);
  expect(titles()).toEqual(["v2"]);
  openSaved(saved("a", 3));
  expect(titles()).toEqual(["v3"]);
});

test("what was changed while a save was on its way is kept, and not saved yet", () => {
  openSaved(saved("a", 1));
  show("a");
  edit(addSection);
  const sent = currentOf(useBoards.getState())?.layout as Layout;
  afterSave(saved("a", 2), sent);
  expect(titles()).toEqual(["v2"]);
  edit(addSection);
  afterSave(saved("a", 3), sent);
  expect(titles()).toEqual(["v2", "Section 2"]);
  expect(isChanged(currentOf(useBoards.getState()))).toBe(true);
});

test("the default follows the metrics until somebody changes it", () => {
  openDefault(LAYOUT, "");
  openDefault({ ...LAYOUT, baseline: "x" }, "");
  expect(currentOf(useBoards.getState())?.layout.baseline).toBe("x");
  edit(addSection);
  openDefault(LAYOUT, "");
  expect(titles()).toEqual(["Section 1"]);
  forget("");
  openDefault(LAYOUT, "");
  expect(titles()).toEqual([]);
});

test("charts with the same axis zoom together, and another dashboard begins unzoomed", () => {
  zoomTo("step", [1, 2]);
  zoomTo("wall", [3, 4]);
  zoomTo("step", null);
  expect(useBoards.getState().zooms).toEqual({ wall: [3, 4] });
  show("b");
  expect(useBoards.getState().zooms).toEqual({});
});
