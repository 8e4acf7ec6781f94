import { expect, test } from "vitest";
import { nearestRows, type TipRow } from "./tooltip";

const row = (name: string, value: number | null, near = false): TipRow => ({
  color: "",
  name,
  value,
  smooth: null,
  near,
});
const names = (rows: readonly TipRow[]) => rows.map((one) => one.name).join("");

test("rows stand by their value at the cursor, a NaN last", () => {
  const rows = [row("a", 1), row("b", 3, true), row("n", null), row("c", 2)];
  expect(names(nearestRows(rows, 10))).toBe("bcan");
});

test("of many rows those around the pointer are shown, from the top of the chart down", () => {
  const rows = [row("a", 1), row("b", 9), row("c", 5, true), row("d", 4), row("e", 6), row("f", 2), row("g", null)];
  expect(names(nearestRows(rows, 3))).toBe("ecd");
});

test("the line at the pointer is never among those left out, at either end and at a NaN", () => {
  const values = [1, 9, 5, 4, 6, 2, null, null];
  for (let near = 0; near < values.length; near += 1) {
    const rows = values.map((value, i) => row(String(i), value, i === near));
    const shown = nearestRows(rows, 3);
    expect(shown).toHaveLength(3);
    expect(shown.some((one) => one.near)).toBe(true);
  }
});
