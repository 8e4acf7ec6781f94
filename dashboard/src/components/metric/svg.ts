/** A chart as SVG text: axes, bands, lines and legend as shapes that another program can edit. Pure. */
import { logSplits, xRange, xTicks, yRange, yTicks } from "@/components/chart/axis";
import type { ChartInput } from "@/components/chart/input";
import type { Ink, LineLook } from "@/components/chart/look";
import type { Line } from "@/data/line";
import { linearTicks, type Scale, scaleOf } from "@/lib/scale";

const [LEFT, RIGHT, TOP, BOTTOM, ROW] = [64, 16, 40, 28, 18];
const TICKS = 6;

export interface Frame {
  width: number;
  height: number;
  /** The part of the y axis that somebody drew a box around; null: what fits. */
  yZoom: readonly [number, number] | null;
}

export function toSvg(
  title: string,
  input: ChartInput,
  looks: readonly LineLook[],
  ink: Ink,
  { width, height, yZoom }: Frame,
): string {
  const { plot, view } = input;
  const rangeX = xRange(plot, view.zoom, view.logX);
  const rangeY = yZoom ?? yRange(plot, rangeX, view.logY, view.clip);
  const x = scaleOf(rangeX, LEFT, width - RIGHT, view.logX);
  const y = scaleOf(rangeY, height - BOTTOM, TOP, view.logY);
  const ticksX = splitsOf(rangeX, view.logX);
  const ticksY = splitsOf(rangeY, view.logY);
  const labelsX = xTicks(view, ticksX);
  const labelsY = yTicks(ticksY);
  const all = height + ROW * plot.lines.length + 8;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${all}" viewBox="0 0 ${width} ${all}" font-family="Inter, sans-serif" font-size="11">`,
    `<rect width="100%" height="100%" fill="${ink.surface}"/>`,
    `<text x="12" y="22" font-size="13" font-weight="600" fill="${ink.fg}">${escaped(title)}</text>`,
    `<clipPath id="plot"><rect x="${LEFT}" y="${TOP}" width="${width - LEFT - RIGHT}" height="${height - TOP - BOTTOM}"/></clipPath>`,
    ...ticksX.map(
      (at, i) => rule(x(at), TOP, x(at), height - BOTTOM, ink) + label(x(at), height - 10, "middle", labelsX[i], ink),
    ),
    ...ticksY.map(
      (at, i) => rule(LEFT, y(at), width - RIGHT, y(at), ink) + label(LEFT - 6, y(at) + 4, "end", labelsY[i], ink),
    ),
    '<g clip-path="url(#plot)" fill="none" stroke-linejoin="round">',
    ...plot.lines.map((line, i) => bandOf(plot.x, line, looks[i], x, y)),
    ...plot.lines.map((line, i) => lineOf(plot.x, view.smoothing > 0 ? line.smooth : line.y, looks[i], x, y)),
    ...plot.lines.map((line) => badOf(plot.x, line, x, height - BOTTOM, ink)),
    "</g>",
    ...plot.lines.map((line, i) => legend(input.nameOf(line), looks[i], height + ROW * i + 6, ink)),
    "</svg>",
  ].join("\n");
}

function splitsOf(range: readonly [number, number], log: boolean): number[] {
  return log ? logSplits(range[0], range[1]) : linearTicks(range, TICKS);
}

function rule(x1: number, y1: number, x2: number, y2: number, ink: Ink): string {
  return `<path d="M${at(x1)} ${at(y1)}L${at(x2)} ${at(y2)}" stroke="${ink.grid}"/>`;
}

function label(x: number, y: number, anchor: string, text: string | undefined, ink: Ink): string {
  return `<text x="${at(x)}" y="${at(y)}" text-anchor="${anchor}" fill="${ink.axis}">${escaped(text ?? "")}</text>`;
}

function lineOf(x: readonly number[], y: Line["y"], look: LineLook | undefined, sx: Scale, sy: Scale): string {
  let path = "";
  let pen = "M";
  for (let i = 0; i < x.length; i += 1) {
    const value = y[i];
    if (value === undefined) continue;
    if (value === null) pen = "M";
    else {
      path += `${pen}${at(sx(x[i] ?? 0))} ${at(sy(value))}`;
      pen = "L";
    }
  }
  const dash = look && look.dash.length > 0 ? ` stroke-dasharray="${look.dash.join(" ")}"` : "";
  return `<path d="${path}" stroke="${look?.color ?? "#888888"}" stroke-width="${look?.bold ? 2.5 : 1.5}"${dash}/>`;
}

function bandOf(x: readonly number[], line: Line, look: LineLook | undefined, sx: Scale, sy: Scale): string {
  const upper: string[] = [];
  const lower: string[] = [];
  for (let i = 0; i < x.length; i += 1) {
    const [low, high] = [line.min[i], line.max[i]];
    if (low === undefined || high === undefined) continue;
    upper.push(`${at(sx(x[i] ?? 0))} ${at(sy(high))}`);
    lower.push(`${at(sx(x[i] ?? 0))} ${at(sy(low))}`);
  }
  if (upper.length < 2) return "";
  return `<path d="M${[...upper, ...lower.reverse()].join("L")}Z" fill="${look?.color ?? "#888888"}" fill-opacity="0.12"/>`;
}

/** A NaN stands as a tick on the floor, as it does on the page. */
function badOf(x: readonly number[], line: Line, sx: Scale, floor: number, ink: Ink): string {
  const ticks = x.flatMap((value, i) => (line.bad[i] ? [`M${at(sx(value))} ${floor}v-9`] : []));
  return ticks.length === 0 ? "" : `<path d="${ticks.join("")}" stroke="${ink.bad}" stroke-width="2"/>`;
}

function legend(name: string, look: LineLook | undefined, y: number, ink: Ink): string {
  const swatch = `<path d="M12 ${y}h14" stroke="${look?.color ?? "#888888"}" stroke-width="2"/>`;
  return `${swatch}<text x="32" y="${y + 4}" fill="${ink.fg}">${escaped(name)}</text>`;
}

function at(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Names are anybody's: nothing in them may become markup, and XML knows no control characters. */
export function escaped(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "�")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
