// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { ChartInput } from "@/components/chart/input";
import { DEFAULT_VIEW } from "@/lib/view-codec";
import { toSvg } from "./svg";

const INK = { axis: "#111111", grid: "#222222", bad: "#333333", warn: "#444444", surface: "#ffffff", fg: "#000000" };
const SIZE = { width: 400, height: 200, yZoom: null };
const LOOK = { color: "#2f6fd6", dash: [6, 3], muted: false, bold: false };

const input = (y: (number | null | undefined)[], more: Partial<ChartInput["view"]> = {}): ChartInput => ({
  plot: {
    x: y.map((_, i) => i + 1),
    lines: [
      { ...{ key: "a", run: "a", metric: "loss", rank: null, attempt: null, group: null }, ...{ y, smooth: y } },
    ].map((line) => ({ ...line, min: y as number[], max: y as number[], bad: y.map(() => 0) })),
    width: 1,
    unit: "",
  },
  view: { ...DEFAULT_VIEW, xMetric: "", ...more },
  marks: [],
  runs: new Set(["a"]),
  pending: false,
  nameOf: () => 'run "<script>" \u0007',
});

const parse = (text: string) => new DOMParser().parseFromString(text, "image/svg+xml");

test.each([{}, { logX: true, logY: true }, { clip: true }, { smoothing: 0.5 }])(
  "a chart is well-formed SVG: %j",
  (view) => {
    const text = toSvg("loss <b>&", input([1, 2, null, 4], view), [LOOK], INK, SIZE);
    expect(parse(text).querySelector("parsererror")).toBeNull();
    expect(text).not.toContain("<script>");
    expect(text).not.toContain("NaN");
    expect(text).toContain('stroke-dasharray="6 3"');
  },
);

test("a NaN lifts the pen, a hole does not; nothing to draw is still a picture", () => {
  const [, path] =
    toSvg("t", input([1, null, 3, undefined, 5]), [LOOK], INK, SIZE).match(
      /d="(M[^"]*)" stroke="#2f6fd6" stroke-width="1.5"/,
    ) ?? [];
  expect(path?.split("M").length).toBe(3);
  expect(parse(toSvg("t", input([]), [], INK, SIZE)).querySelector("svg")).not.toBeNull();
});

test("a box that was drawn on the y axis is the picture's range, and a NaN is a tick on its floor", () => {
  const chart = input([1, null, 3]);
  const [line] = chart.plot.lines;
  if (line) line.bad = [0, 1, 0];
  const text = toSvg("t", chart, [LOOK], INK, { ...SIZE, yZoom: [2, 2.5] });
  expect(text).toContain(">2.1<");
  expect(text.match(/v-9/g)).toHaveLength(1);
});
