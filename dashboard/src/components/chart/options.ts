/** uPlot's options from a chart's input. Everything that may change without a rebuild is read through a function. */
import type uPlot from "uplot";
import { formatCompact } from "@/lib/format";
import { logSplits, xRange, xTicks, yRange, yTicks } from "./axis";
import { bindBox, bindWheel } from "./gestures";
import type { ChartInput, ChartView } from "./input";
import { fade, type Ink, type LineLook } from "./look";
import { drawBad, drawBands, drawMarks } from "./marks";
import { hideTip } from "./tooltip";

export interface OptionsInput {
  size: { width: number; height: number };
  ink: Ink;
  looks(): readonly LineLook[];
  input(): ChartInput;
  /** The part of the y axis that somebody drew a box around; null: what fits. */
  yZoom(): readonly [number, number] | null;
  onZoom(zoom: [number, number] | null, y: [number, number] | null): void;
  onCursor(u: uPlot): void;
  onClick(): void;
}

const FONT = "11px Inter, system-ui, sans-serif";
export const DRAG_PX = 4;
const DOUBLE_CLICK_MS = 300;
const POINTS_BELOW = 60;
const THIN_ABOVE = 6;

export function chartOptions(it: OptionsInput): uPlot.Options {
  const { x, xMetric, logX, logY, smoothing } = it.input().view;
  return {
    ...it.size,
    ms: 1,
    pxAlign: 0,
    padding: [10, 18, 0, 0],
    legend: { show: false },
    focus: { alpha: 0.35 },
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false, dist: DRAG_PX },
      sync: { key: `strata-${xMetric || x}`, scales: ["x", null], setSeries: false },
      focus: { prox: 24 },
      points: { size: 6, width: 0, fill: (_u, i) => it.looks()[slotOf(i, smoothing)]?.color ?? "" },
      bind: { dblclick: () => resetZoom(it) },
    },
    scales: {
      x: {
        time: x === "wall" && !xMetric,
        distr: logX ? 3 : 1,
        range: () => xRange(it.input().plot, it.input().view.zoom, logX),
      },
      y: { distr: logY ? 3 : 1, range: () => rangeY(it) },
    },
    axes: [xAxis(it.ink, it.input().view), yAxis(it.ink, logY)],
    series: [{}, ...lineSeries(it, smoothing)],
    hooks: {
      drawAxes: [(u) => drawBands(u, it.input().plot, it.looks())],
      draw: [
        (u) => {
          drawBad(u, it.input().plot, it.looks(), it.ink);
          drawMarks(u, it.input().marks, it.ink);
        },
      ],
      setCursor: [it.onCursor],
      setSelect: [(u) => select(u, it)],
      ready: [(u) => bindClick(u, it), (u) => bindBox(u), (u) => bindWheel(u, logX, (zoom) => it.onZoom(zoom, null))],
    },
  };
}

function slotOf(seriesIndex: number, smoothing: number): number {
  return smoothing > 0 ? Math.floor((seriesIndex - 1) / 2) : seriesIndex - 1;
}

/** From our own x range: uPlot may ask before it has taken over a new one. */
function rangeY(it: OptionsInput): [number, number] {
  const { plot, view } = it.input();
  const chosen = it.yZoom();
  if (chosen) return [chosen[0], chosen[1]];
  return yRange(plot, xRange(plot, view.zoom, view.logX), view.logY, view.clip);
}

/** As wide as its longest label: 11 px Inter is about 6.2 px a digit. */
function ySize(_u: uPlot, values: string[] | null): number {
  const longest = Math.max(0, ...(values ?? []).map((text) => text?.length ?? 0));
  return Math.max(36, Math.ceil(longest * 6.4) + 14);
}

function axis(ink: Ink, size: number | typeof ySize, values: uPlot.Axis.Values, space: number): uPlot.Axis {
  return {
    stroke: ink.axis,
    font: FONT,
    size,
    space,
    gap: 5,
    values: values as NonNullable<uPlot.Axis["values"]>,
    grid: { stroke: ink.grid, width: 1 },
    ticks: { show: false },
    border: { show: false },
  };
}

const [SECOND, MINUTE, HOUR] = [1000, 60_000, 3_600_000];
const DURATIONS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12, 24, 48, 96, 240].map((n) => n * HOUR),
];

function xAxis(ink: Ink, view: ChartView): uPlot.Axis {
  const base = axis(ink, 24, (_u, splits) => xTicks(view, splits), 64);
  if (view.logX) return { ...base, splits: (_u, _i, min, max) => logSplits(min, max), filter: (_u, splits) => splits };
  return view.x === "rel" && !view.xMetric ? { ...base, incrs: DURATIONS } : base;
}

function yAxis(ink: Ink, log: boolean): uPlot.Axis {
  if (!log) return axis(ink, ySize, (_u, splits) => yTicks(splits), 30);
  const base = axis(ink, ySize, (_u, splits) => splits.map((value) => formatCompact(value)), 30);
  return { ...base, splits: (_u, _i, min, max) => logSplits(min, max), filter: (_u, splits) => splits };
}

function resetZoom(it: OptionsInput): (event: MouseEvent) => null {
  return () => {
    it.onZoom(null, null);
    return null;
  };
}

function lineSeries(it: OptionsInput, smoothing: number): uPlot.Series[] {
  const points = { show: (u: uPlot) => (u.data[0]?.length ?? 0) < POINTS_BELOW, size: 4 };
  // Without a GPU a wide stroke costs several times a hairline; among many lines it is not missed.
  const width = it.looks().length > THIN_ABOVE ? 1 / devicePixelRatio : 1.5;
  return it.looks().flatMap(({ dash, muted, bold }, i): uPlot.Series[] => {
    const color = () => it.looks()[i]?.color ?? "#888888";
    const stroke = muted ? () => fade(color(), 0.55) : color;
    const main: uPlot.Series = { stroke, width: bold ? 2.5 : width, dash, points, spanGaps: false };
    if (smoothing <= 0) return [main];
    return [{ ...main, stroke: () => fade(color(), 0.28), width: 1, dash: [], points: { show: false } }, main];
  });
}

function select(u: uPlot, it: OptionsInput): void {
  const { left, top, width, height } = u.select;
  if (width < DRAG_PX) return;
  const zoom: [number, number] = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
  const isBox = u.cursor.drag?.y === true && height >= DRAG_PX;
  const y: [number, number] | null = isBox ? [u.posToVal(top + height, "y"), u.posToVal(top, "y")] : null;
  u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  it.onZoom(zoom[0] < zoom[1] ? zoom : null, y);
}

/** A click that is no drag asks what happened there. On a zoomed chart it may be the first of two, which reset the zoom. */
function bindClick(u: uPlot, it: OptionsInput): void {
  let downAt: number | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  u.over.addEventListener("mousedown", (event) => {
    downAt = event.clientX;
  });
  u.over.addEventListener("mouseleave", hideTip);
  u.over.addEventListener("click", (event) => {
    clearTimeout(timer);
    if (downAt === null || Math.abs(event.clientX - downAt) >= DRAG_PX || event.detail > 1) return;
    if (it.input().view.zoom === null) it.onClick();
    else timer = setTimeout(() => it.onClick(), DOUBLE_CLICK_MS);
  });
}
