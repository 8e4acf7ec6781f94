/** The picture of all workers: where each of them is drawn, who it is, and what there is in words. */
import type { FleetGroup, WorkerStatus } from "@/api/wire";
import { formatCount } from "./format";

export type FleetState = WorkerStatus | "suspect";

/** Good to bad; the letters are the server's. */
export const FLEET_STATES: Readonly<Record<string, FleetState>> = {
  a: "active",
  c: "checkpointing",
  r: "recovering",
  i: "idle",
  s: "suspect",
  f: "failed",
};

export interface FleetCell {
  group: FleetGroup;
  rank: number;
  state: FleetState;
}

export interface FleetLayout {
  cell: number;
  columns: number;
  rows: number;
  /** The place of each worker: column + row × columns; hosts are never torn where they fit into a row. */
  places: Int32Array;
}

const GAP = 1;
const SMALLEST = 3;
const BIGGEST = 14;

/** Cells as big as fit into the box; hosts stand together, with an empty cell before the next when there is room. */
export function layOut(groups: readonly FleetGroup[], width: number, height: number): FleetLayout {
  for (let cell = BIGGEST; ; cell -= 1) {
    const columns = Math.max(1, Math.floor(width / cell));
    const layout = place(groups, cell, columns, cell > 5 ? GAP : 0);
    if (cell === SMALLEST || layout.rows * cell <= height) return layout;
  }
}

function place(groups: readonly FleetGroup[], cell: number, columns: number, gap: number): FleetLayout {
  const places = new Int32Array(groups.reduce((sum, group) => sum + group.states.length, 0));
  let next = 0;
  let at = 0;
  for (const group of groups) {
    if (at % columns > 0) at += columns - (at % columns);
    for (const size of group.host_sizes) {
      const left = columns - (at % columns);
      if (size > left && size <= columns) at += left;
      for (let i = 0; i < size; i += 1) {
        places[next] = at;
        next += 1;
        at += 1;
      }
      if (at % columns > 0) at += gap;
    }
    if (at % columns > 0) at += columns - (at % columns);
    at += columns;
  }
  return { cell, columns, rows: Math.max(1, Math.ceil(at / columns) - 1), places };
}

/** The worker of a number, counted over all groups. */
export function cellAt(groups: readonly FleetGroup[], index: number): FleetCell | null {
  let left = index;
  for (const group of groups) {
    if (left < group.states.length) {
      const state = FLEET_STATES[group.states[left] ?? ""] ?? "idle";
      return { group, rank: group.ranks?.[left] ?? left, state };
    }
    left -= group.states.length;
  }
  return null;
}

/** "9,990 active · 10 failed", in the order of good to bad. */
export function fleetText(groups: readonly FleetGroup[]): string {
  return Object.entries(FLEET_STATES)
    .map(([letter, state]) => [state, groups.reduce((sum, group) => sum + count(group, letter), 0)] as const)
    .filter(([, number]) => number > 0)
    .map(([state, number]) => `${formatCount(number)} ${state}`)
    .join(" · ");
}

function count(group: FleetGroup, letter: string): number {
  const state = FLEET_STATES[letter];
  if (state === "suspect") return group.suspect;
  let number = 0;
  for (let i = 0; i < group.states.length; i += 1) if (group.states[i] === letter) number += 1;
  return number;
}
