/** Open dashboards: what is saved, what was changed since, and where their charts are zoomed. Switching keeps what was changed. */
import { create } from "zustand";
import type { SavedDashboard } from "@/api/wire";
import { fromWire, type Layout, type Place } from "./layout";

export type Zoom = readonly [number, number];

export interface Board {
  /** null: it was never saved. */
  id: string | null;
  version: number | null;
  name: string;
  project: string;
  layout: Layout;
  /** The layout as the server has it, to tell whether there is something to save. */
  saved: Layout;
}

interface Boards {
  /** The id of the one on show; empty: the one that is made from the metrics. */
  current: string;
  boards: Readonly<Record<string, Board>>;
  /** By x axis: charts with the same one zoom together. */
  zooms: Readonly<Record<string, Zoom>>;
  /** The panel that is being edited, or dragged, and where it would fall. */
  editing: string | null;
  dragging: string | null;
  drop: Place | null;
}

const CLEAR = { zooms: {}, editing: null, dragging: null, drop: null };

export const useBoards = create<Boards>(() => ({ current: "", boards: {}, ...CLEAR }));

export const currentOf = (state: Boards): Board | undefined => state.boards[state.current];

export function isChanged(board: Board | undefined): boolean {
  return (
    board !== undefined && board.layout !== board.saved && JSON.stringify(board.layout) !== JSON.stringify(board.saved)
  );
}

function put(key: string, board: Board): void {
  useBoards.setState((old) => ({ boards: { ...old.boards, [key]: board } }));
}

export function show(key: string): void {
  if (useBoards.getState().current !== key) useBoards.setState({ current: key, ...CLEAR });
}

/** What the server has. Changes that nobody saved stay, unless they are given up: then a save says who was quicker. */
export function openSaved(found: SavedDashboard, giveUp = false): void {
  const open = useBoards.getState().boards[found.id];
  if (open?.version === found.version || (isChanged(open) && !giveUp)) return;
  const layout = fromWire(found.layout);
  const { id, version, name, project } = found;
  put(id, { id, version, name, project, layout, saved: layout });
}

/** What was just saved. Changes that were made while it was on its way stay, and are not saved yet. */
export function afterSave(found: SavedDashboard, sent: Layout): void {
  const open = useBoards.getState().boards[found.id];
  const saved = fromWire(found.layout);
  const { id, version, name, project } = found;
  put(id, { id, version, name, project, layout: open && open.layout !== sent ? open.layout : saved, saved });
}

/** Made anew from what is there, as long as nobody has changed it. */
export function openDefault(layout: Layout, project: string): void {
  const open = useBoards.getState().boards[""];
  if (isChanged(open) || JSON.stringify(open?.layout) === JSON.stringify(layout)) return;
  put("", { id: null, version: null, name: "Default", project, layout, saved: layout });
}

/** Forgets changes that were saved under another name, or given up. */
export function forget(key: string): void {
  useBoards.setState((old) => ({
    boards: Object.fromEntries(Object.entries(old.boards).filter(([id]) => id !== key)),
  }));
}

export function edit(change: (layout: Layout) => Layout): void {
  const { current, boards } = useBoards.getState();
  const board = boards[current];
  if (board) put(current, { ...board, layout: change(board.layout) });
}

export function zoomTo(axis: string, zoom: Zoom | null): void {
  useBoards.setState(({ zooms }) => {
    const { [axis]: _, ...others } = zooms;
    return { zooms: zoom === null ? others : { ...others, [axis]: zoom } };
  });
}
