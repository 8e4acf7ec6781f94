import { expect, test } from "vitest";
import type { FleetGroup } from "@/api/wire";
import { cellAt, fleetText, layOut } from "./fleet";

function group(states: string, sizes: number[], more: Partial<FleetGroup> = {}): FleetGroup {
  const rest = { counts: {}, suspect: 0, ranks: null, step: null, step_time_s: null, slowest: [] };
  return { task_id: "t", states, host_sizes: sizes, ...rest, ...more };
}

test("ten thousand ranks fit into a panel, and into a phone", () => {
  const fleet = [
    group(
      "a".repeat(10_000),
      Array.from({ length: 1250 }, () => 8),
    ),
  ];
  for (const [width, height] of [
    [1350, 420],
    [340, 420],
  ] as const) {
    const layout = layOut(fleet, width, height);
    expect(layout.rows * layout.cell).toBeLessThanOrEqual(height * 1.3);
    expect(layout.columns * layout.cell).toBeLessThanOrEqual(width);
    expect(new Set(layout.places).size).toBe(10_000);
  }
});

test("a host is not torn, and a task begins a line", () => {
  const layout = layOut([group("aaaaaa", [3, 3]), group("ff", [2])], 56, 400);
  expect(layout.columns).toBe(4);
  expect([...layout.places]).toEqual([0, 1, 2, 4, 5, 6, 12, 13]);
});

test("a place is somebody", () => {
  const groups = [group("aas", [3]), group("f", [1], { task_id: null, ranks: [7] })];
  expect(cellAt(groups, 2)).toMatchObject({ rank: 2, state: "suspect" });
  expect(cellAt(groups, 3)).toMatchObject({ rank: 7, state: "failed" });
  expect(cellAt(groups, 4)).toBeNull();
  expect(fleetText([group("aaf", [3]), group("s", [1], { suspect: 1 })])).toBe("2 active · 1 suspect · 1 failed");
});
