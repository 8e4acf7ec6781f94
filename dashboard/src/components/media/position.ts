/** Where a slider over steps stands, outside React: pictures follow it frame by frame, the rest when it rests. */
export class Position {
  #step: number | null = null;
  #listeners = new Set<() => void>();

  /** Null = the newest. */
  get step(): number | null {
    return this.#step;
  }

  set(step: number | null): void {
    this.#step = step;
    for (const listener of this.#listeners) listener();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}
