/** What uPlot does not draw: the min–max band under each line, NaN ticks on the floor, events at the edges. */
import type uPlot from "uplot";
import type { Line, Plot } from "@/data/line";
import { fade, type Ink, type LineLook } from "./look";

export interface Mark {
  x: number;
  kind: "alert" | "critical" | "checkpoint" | "attempt";
}

const MAX_BANDS = 6;
const SPIKE_SHARE = 0.15;

export function drawBands(u: uPlot, plot: Plot, looks: readonly LineLook[]): void {
  const { ctx } = u;
  const many = plot.lines.length > MAX_BANDS;
  // Many bands on top of each other turn to mud and cost time: then only what a mean would hide is drawn. The band of a
  // group is what it is drawn for.
  if (many) drawSpikes(u, plot, looks);
  const alpha = many ? 0.35 / plot.lines.length : plot.lines.length > 3 ? 0.09 : 0.16;
  ctx.save();
  clip(u);
  plot.lines.forEach((line, i) => {
    if (many && line.group === null) return;
    ctx.fillStyle = fade(looks[i]?.color ?? "#888888", alpha);
    fillBand(u, plot.x, line);
  });
  ctx.restore();
}

/** A thin stroke from lowest to highest in each bucket that spreads over a good part of the chart. */
function drawSpikes(u: uPlot, plot: Plot, looks: readonly LineLook[]): void {
  const { ctx } = u;
  const { min, max } = u.scales["y"] ?? {};
  const worth = ((max ?? 1) - (min ?? 0)) * SPIKE_SHARE;
  ctx.save();
  clip(u);
  ctx.lineWidth = devicePixelRatio;
  plot.lines.forEach((line, i) => {
    if (line.group !== null) return;
    ctx.strokeStyle = fade(looks[i]?.color ?? "#888888", 0.5);
    ctx.beginPath();
    for (let k = 0; k < plot.x.length; k += 1) {
      const [low, high] = [line.min[k], line.max[k]];
      if (low === undefined || high === undefined || high - low < worth) continue;
      const at = u.valToPos(plot.x[k] ?? 0, "x", true);
      ctx.moveTo(at, u.valToPos(low, "y", true));
      ctx.lineTo(at, u.valToPos(high, "y", true));
    }
    ctx.stroke();
  });
  ctx.restore();
}

function clip(u: uPlot): void {
  u.ctx.beginPath();
  u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  u.ctx.clip();
}

function fillBand(u: uPlot, x: readonly number[], line: Line): void {
  const { ctx } = u;
  const upper: [number, number][] = [];
  const lower: [number, number][] = [];
  let wide = false;
  for (let i = 0; i < x.length; i += 1) {
    const min = line.min[i];
    const max = line.max[i];
    if (min === undefined || max === undefined) continue;
    const at = u.valToPos(x[i] ?? 0, "x", true);
    upper.push([at, u.valToPos(max, "y", true)]);
    lower.push([at, u.valToPos(min, "y", true)]);
    wide ||= max > min;
  }
  if (!wide) return;
  ctx.beginPath();
  for (const [px, py] of upper) ctx.lineTo(px, py);
  for (const [px, py] of lower.reverse()) ctx.lineTo(px, py);
  ctx.closePath();
  ctx.fill();
}

/** A loss chart that hides NaN lies: each bucket with one gets a tick in the run's colour, with a red foot. */
export function drawBad(u: uPlot, plot: Plot, looks: readonly LineLook[], ink: Ink): void {
  const { ctx } = u;
  const scale = devicePixelRatio;
  const floor = u.bbox.top + u.bbox.height;
  ctx.save();
  clip(u);
  plot.lines.forEach((line, i) => {
    for (let k = 0; k < plot.x.length; k += 1) {
      if (!line.bad[k]) continue;
      const at = Math.round(u.valToPos(plot.x[k] ?? 0, "x", true));
      ctx.fillStyle = ink.bad;
      ctx.fillRect(at - scale, floor - 9 * scale, 2 * scale, 9 * scale);
      ctx.fillStyle = looks[i]?.color ?? ink.bad;
      ctx.fillRect(at - scale, floor - 12 * scale, 2 * scale, 3 * scale);
    }
  });
  ctx.restore();
}

/** From where on a later attempt did the steps again. */
function dash({ ctx, bbox }: uPlot, at: number, ink: Ink): void {
  const scale = devicePixelRatio;
  ctx.strokeStyle = ink.axis;
  ctx.lineWidth = scale;
  ctx.setLineDash([2 * scale, 4 * scale]);
  ctx.beginPath();
  ctx.moveTo(at, bbox.top);
  ctx.lineTo(at, bbox.top + bbox.height);
  ctx.stroke();
  ctx.setLineDash([]);
}

export function drawMarks(u: uPlot, marks: readonly Mark[], ink: Ink): void {
  const { ctx } = u;
  const scale = devicePixelRatio;
  const { min = -Infinity, max = Infinity } = u.scales["x"] ?? {};
  ctx.save();
  for (const mark of marks) {
    if (mark.x < (min ?? -Infinity) || mark.x > (max ?? Infinity)) continue;
    const at = Math.round(u.valToPos(mark.x, "x", true));
    if (mark.kind === "checkpoint") {
      ctx.fillStyle = ink.axis;
      ctx.fillRect(at, u.bbox.top + u.bbox.height - 3 * scale, scale, 3 * scale);
      continue;
    }
    if (mark.kind === "attempt") {
      dash(u, at, ink);
      continue;
    }
    ctx.fillStyle = mark.kind === "critical" ? ink.bad : ink.warn;
    ctx.beginPath();
    ctx.moveTo(at - 4 * scale, u.bbox.top - 6 * scale);
    ctx.lineTo(at + 4 * scale, u.bbox.top - 6 * scale);
    ctx.lineTo(at, u.bbox.top);
    ctx.fill();
    ctx.globalAlpha = 0.25;
    ctx.fillRect(at, u.bbox.top, scale, u.bbox.height);
    ctx.globalAlpha = 1;
  }
  ctx.restore();
}
