import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FrameLoop } from "./frame";

let now = 0;
let frames: FrameRequestCallback[] = [];

function frame(): void {
  now += 16;
  for (const run of frames.splice(0)) run(now);
}

beforeEach(() => {
  now = 0;
  frames = [];
  vi.stubGlobal("requestAnimationFrame", (run: FrameRequestCallback) => frames.push(run));
  vi.spyOn(performance, "now").mockImplementation(() => now);
});
afterEach(() => vi.unstubAllGlobals());

/** Charts that each take so long to draw. */
function charts(count: number, ms: number) {
  return Array.from({ length: count }, () => {
    const chart = { drawn: 0, draw: () => {} };
    chart.draw = () => {
      now += ms;
      chart.drawn += 1;
    };
    return chart;
  });
}

test("twenty charts that are due at once are spread over frames, none of which is long", () => {
  const loop = new FrameLoop();
  const all = charts(20, 3);
  for (const chart of all) loop.mark(chart);
  const long: number[] = [];
  for (let i = 0; i < 30; i += 1) {
    const before = now;
    frame();
    long.push(now - before - 16);
  }
  expect(Math.max(...long)).toBeLessThanOrEqual(15);
  expect(all.map((chart) => chart.drawn)).toEqual(Array(20).fill(1));
});

test("a chart is drawn ten times a second at most, but at once after a click", () => {
  const loop = new FrameLoop();
  const [chart] = charts(1, 1);
  if (!chart) throw new Error("not there");
  for (let i = 0; i < 60; i += 1) {
    loop.mark(chart);
    frame();
  }
  expect(chart.drawn).toBeLessThanOrEqual(11);
  const before = chart.drawn;
  loop.mark(chart);
  frame();
  loop.urge(chart);
  frame();
  expect(chart.drawn).toBeGreaterThan(before);
});

test("a chart that is gone is not drawn, and an idle page asks for no frame", () => {
  const loop = new FrameLoop();
  const [chart] = charts(1, 1);
  if (!chart) throw new Error("not there");
  loop.mark(chart);
  loop.forget(chart);
  for (let i = 0; i < 3; i += 1) frame();
  expect(chart.drawn).toBe(0);
  expect(frames).toHaveLength(0);
});
