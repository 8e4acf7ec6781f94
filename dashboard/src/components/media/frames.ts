/** Pictures of one name over steps, read ahead: entries in chunks, files around the place that is looked at, decoded off
 * the main thread, and kept within a budget. What the slider left behind is never waited for. */
import type { MediaEntry } from "@/api/wire";
import { itemsOf, type MediaItem } from "@/lib/media";

export interface Frame {
  step: number;
  items: MediaItem[];
  /** Of each item; null when it cannot be shown. */
  bitmaps: (ImageBitmap | null)[];
}

interface Sources {
  entries(from: number, to: number): Promise<MediaEntry[]>;
  picture(file: string): Promise<ImageBitmap>;
}

const CHUNK = 200;
const AHEAD = 12;
const BEHIND = 3;
const AT_ONCE = 6;
const BUDGET = 96 << 20;
export const SHOWN_ITEMS = 16;

export class Frames {
  #steps: readonly number[] = [];
  #at = -1;
  #forward = true;
  #texts = new Map<number, string>();
  #asked = new Set<number>();
  #frames = new Map<number, Frame>();
  #bytes = 0;
  #loading = new Set<number>();
  #listeners = new Set<() => void>();
  #closed = false;

  constructor(private readonly sources: Sources) {}

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  setSteps(steps: readonly number[]): void {
    if (steps.length !== this.#steps.length) this.#asked.delete(Math.floor((this.#steps.length - 1) / CHUNK));
    this.#steps = steps;
    if (this.#at >= 0) this.look(this.#at);
  }

  /** Goes to a place among the steps; returns the frame if it is there. */
  look(at: number): Frame | null {
    if (at !== this.#at) this.#forward = at >= this.#at;
    this.#at = at;
    this.#fill();
    const step = this.#steps[at];
    return step === undefined ? null : (this.#frames.get(step) ?? null);
  }

  close(): void {
    this.#closed = true;
    for (const frame of this.#frames.values()) release(frame);
    this.#frames.clear();
    this.#listeners.clear();
  }

  /** The places to have, nearest first. */
  #wanted(): number[] {
    const [ahead, behind] = this.#forward ? [AHEAD, BEHIND] : [BEHIND, AHEAD];
    const places = [this.#at];
    for (let by = 1; by <= AHEAD; by++) {
      if (by <= ahead) places.push(this.#at + by);
      if (by <= behind) places.push(this.#at - by);
    }
    return places.filter((place) => place >= 0 && place < this.#steps.length);
  }

  #fill(): void {
    if (this.#closed) return;
    for (const place of this.#wanted()) {
      const step = this.#steps[place];
      if (step === undefined || this.#frames.has(step) || this.#loading.has(step)) continue;
      const text = this.#texts.get(step);
      if (text === undefined) void this.#loadChunk(Math.floor(place / CHUNK));
      else if (this.#loading.size < AT_ONCE) void this.#load(step, text);
    }
  }

  async #loadChunk(chunk: number): Promise<void> {
    if (this.#asked.has(chunk)) return;
    this.#asked.add(chunk);
    const from = this.#steps[chunk * CHUNK] ?? 0;
    const to = this.#steps[Math.min(this.#steps.length, (chunk + 1) * CHUNK) - 1] ?? from;
    try {
      for (const entry of await this.sources.entries(from, to)) this.#texts.set(entry.step, entry.text);
      this.#fill();
    } catch {
      this.#asked.delete(chunk); // asked for again when somebody looks there
    }
  }

  async #load(step: number, text: string): Promise<void> {
    this.#loading.add(step);
    const items = itemsOf(text);
    const bitmaps = await Promise.all(
      items.slice(0, SHOWN_ITEMS).map(({ file }) => (file ? this.sources.picture(file).catch(() => null) : null)),
    );
    this.#loading.delete(step);
    const frame = { step, items, bitmaps };
    if (this.#closed) {
      release(frame);
      return;
    }
    this.#frames.set(step, frame);
    this.#bytes += size(frame);
    this.#trim();
    if (step === this.#steps[this.#at]) for (const listener of this.#listeners) listener();
    this.#fill();
  }

  /** The oldest go first, never one that is wanted. */
  #trim(): void {
    const wanted = new Set(this.#wanted().map((place) => this.#steps[place]));
    for (const [step, frame] of this.#frames) {
      if (this.#bytes <= BUDGET) return;
      if (wanted.has(step)) continue;
      this.#frames.delete(step);
      this.#bytes -= size(frame);
      release(frame);
    }
  }
}

function size(frame: Frame): number {
  return frame.bitmaps.reduce((sum, bitmap) => sum + (bitmap ? bitmap.width * bitmap.height * 4 : 0), 0);
}

function release(frame: Frame): void {
  for (const bitmap of frame.bitmaps) bitmap?.close();
}
