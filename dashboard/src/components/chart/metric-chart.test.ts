// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Plot } from "@/data/line";
import { DEFAULT_VIEW } from "@/lib/view-codec";
import type { ChartInput } from "./input";

const built: { setData: ReturnType<typeof vi.fn>; destroyed: boolean }[] = [];

vi.mock("uplot", () => ({
  default: class {
    setData = vi.fn();
    setSize = vi.fn();
    batch = (change: () => void) => change();
    destroyed = false;
    constructor() {
      built.push(this);
    }
    destroy(): void {
      this.destroyed = true;
    }
  },
}));

const { MetricChart } = await import("./metric-chart");

function plot(runs: readonly string[]): Plot {
  const lines = runs.map((run) => ({
    key: run,
    run,
    metric: "loss",
    group: null,
    rank: null,
    attempt: null,
    origin: null,
    y: [1, 2],
    smooth: [1, 2],
    min: [1, 2],
    max: [1, 2],
    bad: [0, 0],
  }));
  return { x: [1, 2], lines, width: 1, unit: "" };
}

const charts: InstanceType<typeof MetricChart>[] = [];
let frames: FrameRequestCallback[] = [];
let now = 0;

/** Runs every frame that is asked for during a second. */
function second(): void {
  for (let i = 0; i < 60; i += 1) {
    now += 16;
    for (const frame of frames.splice(0)) frame(now);
  }
}

beforeEach(() => {
  built.length = 0;
  frames = [];
  vi.stubGlobal("requestAnimationFrame", (frame: FrameRequestCallback) => frames.push(frame));
  vi.spyOn(performance, "now").mockImplementation(() => now);
});
afterEach(() => {
  // The loop is one for the whole page: it must have nothing left to do.
  for (const chart of charts.splice(0)) chart.destroy();
  second();
  vi.unstubAllGlobals();
});

function make(input: () => ChartInput) {
  const chart = new MetricChart(document.createElement("div"), { read: input });
  charts.push(chart);
  chart.resize(400, 170);
  return chart;
}

const view: ChartInput["view"] = { ...DEFAULT_VIEW, xMetric: "" };
const input = (runs: readonly string[], more: Partial<ChartInput["view"]> = {}): ChartInput => ({
  plot: plot(runs),
  view: { ...view, ...more },
  marks: [],
  nameOf: (line) => line.run,
  runs: new Set(["a"]),
  pending: false,
});

test("new points go in by setData; a hundred marks in a second draw ten times at most", () => {
  const chart = make(() => input(["a"]));
  chart.setVisible(true);
  second();
  const draws = built[0]?.setData;
  draws?.mockClear();
  for (let i = 0; i < 60; i += 1) {
    chart.invalidate();
    now += 16;
    for (const frame of frames.splice(0)) frame(now);
  }
  expect(built.length).toBe(1);
  expect(draws?.mock.calls.length).toBeGreaterThan(5);
  expect(draws?.mock.calls.length).toBeLessThanOrEqual(10);
});

test("only another structure builds another chart", () => {
  let current = input(["a"]);
  const chart = make(() => current);
  chart.setVisible(true);
  second();
  for (const next of [
    input(["a"], { zoom: [1, 2] }),
    input(["a"]),
    input(["a", "b"]),
    input(["a", "b"], { logY: true }),
  ]) {
    current = next;
    chart.invalidate(true);
    second();
  }
  expect(built.map((one) => one.destroyed)).toEqual([true, true, false]);
});

test("off the screen there is no chart and nothing is drawn", () => {
  const read = vi.fn(() => input(["a"]));
  const chart = make(read);
  chart.invalidate(true);
  second();
  expect(built.length).toBe(0);
  chart.setVisible(true);
  second();
  chart.setVisible(false);
  read.mockClear();
  chart.invalidate(true);
  second();
  expect(built[0]?.destroyed).toBe(true);
  expect(read).not.toHaveBeenCalled();
});
