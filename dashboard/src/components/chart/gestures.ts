/** What the pointer does to a chart beside uPlot's own drag along x: Shift and a drag draw a box, Shift and the wheel zoom around the pointer. */
import type uPlot from "uplot";

const PER_NOTCH = 0.8;

/** Before uPlot sees the press, so that its selection has both directions for this one drag. */
export function bindBox(u: uPlot): void {
  u.over.addEventListener(
    "mousedown",
    (event) => {
      if (u.cursor.drag) u.cursor.drag.y = event.shiftKey;
    },
    { capture: true },
  );
}

export function bindWheel(u: uPlot, log: boolean, onZoom: (zoom: [number, number]) => void): void {
  u.over.addEventListener(
    "wheel",
    (event) => {
      if (!event.shiftKey) return;
      event.preventDefault();
      const { min, max } = u.scales["x"] ?? {};
      if (typeof min !== "number" || typeof max !== "number") return;
      const share = Math.min(1, Math.max(0, (u.cursor.left ?? 0) / u.over.clientWidth));
      // Browsers turn a wheel with Shift into a sideways one.
      const closer = (event.deltaY || event.deltaX) < 0;
      onZoom(zoomAround([min, max], share, closer ? PER_NOTCH : 1 / PER_NOTCH, log));
    },
    { passive: false },
  );
}

/** The range, `factor` times as wide, in which the same value stays under the pointer. */
export function zoomAround(
  range: readonly [number, number],
  share: number,
  factor: number,
  log: boolean,
): [number, number] {
  const [to, back] = log ? [Math.log, Math.exp] : [(value: number) => value, (value: number) => value];
  const [low, high] = [to(range[0]), to(range[1])];
  const at = low + (high - low) * share;
  return [back(at - (at - low) * factor), back(at + (high - at) * factor)];
}
