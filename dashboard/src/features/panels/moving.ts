/** Moving and sizing panels by pointer. The keyboard's way is in the frame; both change the layout by the same functions. */
import type { PointerEvent as ReactPointerEvent } from "react";
import { edit, useBoards } from "./boards";
import { GRID_COLUMNS, movePanel, type Panel, type Place, placeOf, resizePanel } from "./layout";

export const ROW_PX = 56;
export const GAP_PX = 12;

function follow(
  event: ReactPointerEvent<HTMLElement>,
  onMove: (at: PointerEvent) => void,
  onEnd: (done: boolean) => void,
): void {
  if (event.button !== 0) return;
  event.preventDefault();
  const handle = event.currentTarget;
  handle.setPointerCapture(event.pointerId);
  const stop = (done: boolean) => () => {
    handle.removeEventListener("pointermove", onMove);
    handle.removeEventListener("pointerup", finish);
    handle.removeEventListener("pointercancel", cancel);
    onEnd(done);
  };
  const finish = stop(true);
  const cancel = stop(false);
  handle.addEventListener("pointermove", onMove);
  handle.addEventListener("pointerup", finish);
  handle.addEventListener("pointercancel", cancel);
}

/** The place in front of or behind the panel under the pointer, or the end of the section under it. */
export function dropAt(x: number, y: number): Place | null {
  const under = document.elementFromPoint(x, y);
  const section = under?.closest<HTMLElement>("[data-section]");
  if (!section) return null;
  const panel = under?.closest<HTMLElement>("[data-panel]");
  const all = [...section.querySelectorAll<HTMLElement>("[data-panel]")];
  if (!panel) return { section: Number(section.dataset["section"]), index: all.length };
  const { left, width } = panel.getBoundingClientRect();
  return { section: Number(section.dataset["section"]), index: all.indexOf(panel) + (x > left + width / 2 ? 1 : 0) };
}

export function startDrag(event: ReactPointerEvent<HTMLElement>, id: string): void {
  useBoards.setState({ dragging: id, drop: null });
  follow(
    event,
    (at) => useBoards.setState({ drop: dropAt(at.clientX, at.clientY) }),
    (done) => {
      const { drop } = useBoards.getState();
      useBoards.setState({ dragging: null, drop: null });
      if (done && drop) edit((layout) => (placeOf(layout, id) ? movePanel(layout, id, drop) : layout));
    },
  );
}

export function startResize(event: ReactPointerEvent<HTMLElement>, panel: Panel, grid: HTMLElement): void {
  const column = (grid.clientWidth + GAP_PX) / GRID_COLUMNS;
  const [startX, startY] = [event.clientX, event.clientY];
  follow(
    event,
    (at) => {
      const w = panel.w + (at.clientX - startX) / column;
      const h = panel.h + (at.clientY - startY) / (ROW_PX + GAP_PX);
      edit((layout) => resizePanel(layout, panel.id, w, h));
    },
    () => {},
  );
}
