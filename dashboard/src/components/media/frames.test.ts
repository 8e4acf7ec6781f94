import { describe, expect, it } from "vitest";
import { Frames } from "./frames";

const NAME = `${"a".repeat(64)}.png`;
const TEXT = JSON.stringify({ items: [{ file: NAME }] });

function bitmap(closed: { count: number }): ImageBitmap {
  return { width: 1024, height: 1024, close: () => closed.count++ } as unknown as ImageBitmap;
}

/** Lets everything that was asked for arrive. */
async function settle(): Promise<void> {
  for (let i = 0; i < 200; i++) await Promise.resolve();
}

describe("Frames", () => {
  it("asks for entries by chunks, and reads ahead within its budget", async () => {
    const asked: [number, number][] = [];
    const closed = { count: 0 };
    let pictures = 0;
    const frames = new Frames({
      entries: async (from, to) => {
        asked.push([from, to]);
        return Array.from({ length: to - from + 1 }, (_, i) => ({
          step: from + i,
          event_time_ms: 0,
          attempt: 0,
          text: TEXT,
        }));
      },
      picture: async () => {
        pictures++;
        return bitmap(closed);
      },
    });
    frames.setSteps(Array.from({ length: 10_000 }, (_, i) => i));
    let told = 0;
    frames.subscribe(() => told++);
    expect(frames.look(0)).toBeNull();
    await settle();
    expect(told).toBe(1);
    expect(frames.look(0)?.step).toBe(0);
    expect(frames.look(5)?.step).toBe(5);
    for (let at = 0; at < 400; at++) {
      frames.look(at);
      await settle();
      expect(frames.look(at)?.bitmaps).toHaveLength(1);
    }
    expect(asked.slice(0, 3)).toEqual([
      [0, 199],
      [200, 399],
      [400, 599],
    ]);
    expect(pictures).toBeLessThan(450);
    expect(pictures - closed.count).toBeLessThanOrEqual(24 + 16);
    frames.close();
    expect(closed.count).toBe(pictures);
  });

  it("shows an entry whose picture is gone, and asks again for entries that failed", async () => {
    let fail = true;
    const frames = new Frames({
      entries: async () => {
        if (fail) throw new Error("away");
        return [{ step: 3, event_time_ms: 0, attempt: 0, text: TEXT }];
      },
      picture: async () => {
        throw new Error("removed");
      },
    });
    frames.setSteps([3]);
    frames.look(0);
    await settle();
    fail = false;
    frames.look(0);
    await settle();
    expect(frames.look(0)?.bitmaps).toEqual([null]);
  });
});
