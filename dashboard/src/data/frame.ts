/** One animation loop for all charts: a dirty chart is drawn at most ten times a second, a few per frame. */

export interface Drawable {
  draw(): void;
}

/** wandb's own cap (PR 12734): faster redraws cost CPU and show nothing more. */
const MIN_INTERVAL_MS = 100;
const FRAME_BUDGET_MS = 10;

export class FrameLoop {
  readonly #dirty = new Set<Drawable>();
  readonly #drawnAt = new WeakMap<Drawable, number>();
  #scheduled = false;
  draws = 0;

  /** Charts that are still to be drawn. */
  get waiting(): number {
    return this.#dirty.size;
  }

  mark(chart: Drawable): void {
    this.#dirty.add(chart);
    this.#schedule();
  }

  /** Drawn at the next frame whatever the cap: an answer to a click must not wait. */
  urge(chart: Drawable): void {
    this.#drawnAt.delete(chart);
    this.mark(chart);
  }

  forget(chart: Drawable): void {
    this.#dirty.delete(chart);
  }

  #schedule(): void {
    if (this.#scheduled || this.#dirty.size === 0) return;
    this.#scheduled = true;
    requestAnimationFrame(this.#run);
  }

  readonly #run = (): void => {
    this.#scheduled = false;
    const start = performance.now();
    for (const chart of [...this.#dirty]) {
      const now = performance.now();
      if (now - start > FRAME_BUDGET_MS) break;
      if (now - (this.#drawnAt.get(chart) ?? -Infinity) < MIN_INTERVAL_MS) continue;
      this.#dirty.delete(chart);
      this.#drawnAt.set(chart, now);
      this.draws += 1;
      chart.draw();
    }
    this.#schedule();
  };
}

export const frameLoop: FrameLoop = new FrameLoop();
