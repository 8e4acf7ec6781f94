/**
 * A page that is being opened asks first. What is less urgent waits until its code is here, it has asked, was answered
 * and is drawn: a browser opens six connections to a server, and on a busy machine every answer delays the next.
 */
import { numAwaited } from "@/api/client";
import { after } from "@/lib/after";
import { nextFrame } from "@/lib/next-frame";
import { frameLoop } from "./frame";
import { pointLoader } from "./loader";

/** Frames until a chart is laid out, has been seen to be on screen, and reads its series. */
const QUIET_FRAMES = 3;
/** A page that always asks for something must not keep others waiting for ever, nor one whose code cannot be had. */
const BUSY_MS = 1000;
const CODE_MS = 5000;

export class Opening {
  /** The code of the page is here, and its first requests are sent. */
  shown: () => void = () => {};
  readonly #shown = new Promise<void>((resolve) => {
    this.shown = resolve;
  });

  constructor(readonly isBusy: () => boolean) {}

  /** When nothing that the page asked for is awaited or still to be drawn. */
  async rested(): Promise<void> {
    await Promise.race([this.#shown, after(CODE_MS)]);
    const until = performance.now() + BUSY_MS;
    for (let quiet = 0; quiet < QUIET_FRAMES && performance.now() < until; quiet = this.isBusy() ? 0 : quiet + 1) {
      await nextFrame();
    }
  }
}

export const opening: Opening = new Opening(() => numAwaited() + pointLoader.waiting + frameLoop.waiting > 0);
