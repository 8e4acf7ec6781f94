/** Where we are in the server's event stream. Ids are `epoch:seq`; a replay after a reconnect may overlap. */
import type { StreamEventType } from "./wire";

export class Cursor {
  #epoch: string | null = null;
  #seq = -1;

  /** The id to resume from, or null to start with a snapshot. */
  get id(): string | null {
    return this.#epoch === null ? null : `${this.#epoch}:${this.#seq}`;
  }

  /** The number of the event that was accepted last; Infinity from a server that numbers none. */
  get seq(): number {
    return this.#epoch === null ? Infinity : this.#seq;
  }

  /** True when the event is new. A snapshot is always taken; a resync forgets the place. */
  accept(type: StreamEventType, id: string): boolean {
    if (type === "resync") {
      this.#epoch = null;
      this.#seq = -1;
      return true;
    }
    const cut = id.lastIndexOf(":");
    const seq = Number(id.slice(cut + 1));
    // A server without ids can be shown, it just cannot be resumed.
    if (cut < 1 || !Number.isInteger(seq)) return true;
    const epoch = id.slice(0, cut);
    if (type !== "snapshot" && epoch === this.#epoch && seq <= this.#seq) return false;
    this.#epoch = epoch;
    this.#seq = seq;
    return true;
  }
}
