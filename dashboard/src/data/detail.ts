/** Finer points for a zoomed chart, asked for once per window; the coarse line stays until they are here. */
import type { RunSeries } from "@/api/wire";
import type { XKind } from "@/lib/view-codec";
import { requests, sourceKind } from "./source";

const KEEP = 200;
const POINTS = 2000;

export interface Window {
  run: string;
  metric: string;
  x: XKind;
  zoom: readonly [number, number];
  /** Unix ms of the run's start. */
  start: number;
}

class DetailCache {
  readonly #found = new Map<string, RunSeries[] | null>();

  /** The series of the window, or null while there is nothing better than the coarse line. */
  get(window: Window, onArrival: () => void): RunSeries[] | null {
    const key = [sourceKind(), window.run, window.metric, window.x, ...window.zoom].join("\n");
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    this.#found.set(key, null);
    if (this.#found.size > KEEP) this.#found.delete(this.#found.keys().next().value ?? "");
    requests()
      .series(window.run, { metric: window.metric, points: POINTS, ...limits(window) })
      .then((series) => {
        this.#found.set(key, series);
        onArrival();
      })
      // The coarse line is still true; the next zoom asks again.
      .catch(() => this.#found.delete(key));
    return null;
  }
}

function limits({ x, zoom: [from, to], start }: Window) {
  if (x === "step") return { from_step: Math.max(0, Math.floor(from)), to_step: Math.ceil(to) };
  const offset = x === "rel" ? start : 0;
  return { from_time: (from + offset) / 1000, to_time: (to + offset) / 1000 };
}

export const details: DetailCache = new DetailCache();
