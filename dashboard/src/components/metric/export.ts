/** A chart as CSV, as SVG, or as a PNG with its title and legend. */
import type { ChartInput } from "@/components/chart/input";
import { type LineLook, readInk } from "@/components/chart/look";
import type { MetricChart } from "@/components/chart/metric-chart";
import { valueAt } from "@/data/line";
import { useTheme } from "@/stores/theme";
import { toSvg } from "./svg";

export const FORMATS = ["csv", "png", "svg"] as const;
export type Format = (typeof FORMATS)[number];

export function saveChart(title: string, chart: MetricChart | null, format: Format): void {
  if (!chart?.input) return;
  if (format === "csv") saveCsv(title, chart.input);
  else if (format === "svg") saveSvg(title, chart.input, chart);
  else if (chart.canvas) savePng(title, chart.input, chart.looks, chart.canvas);
}

function saveSvg(title: string, input: ChartInput, { host, looks, yZoom }: MetricChart): void {
  const size = { width: Math.max(host.clientWidth, 320), height: Math.max(host.clientHeight, 200), yZoom };
  const text = toSvg(title, input, looks, readInk(useTheme.getState().theme), size);
  download(`${title}.svg`, new Blob([text], { type: "image/svg+xml" }));
}

export function toCsv({ plot, view, nameOf }: ChartInput): string {
  const x = view.xMetric ? view.xMetric : view.x === "step" ? "step" : view.x === "rel" ? "ms_since_start" : "unix_ms";
  const head = [x, ...plot.lines.flatMap((line) => [nameOf(line), `${nameOf(line)} min`, `${nameOf(line)} max`])];
  const rows = plot.x.map((at, i) => [
    at,
    ...plot.lines.flatMap((line) => [cell(valueAt(line, i)), line.min[i] ?? "", line.max[i] ?? ""]),
  ]);
  return [head.map(quote), ...rows].map((row) => row.join(",")).join("\n");
}

function cell(value: number | null | undefined): string | number {
  return value === null ? "NaN" : (value ?? "");
}

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function download(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, "_");
  link.click();
  URL.revokeObjectURL(url);
}

export function saveCsv(metric: string, input: ChartInput): void {
  download(`${metric}.csv`, new Blob([toCsv(input)], { type: "text/csv" }));
}

/** Draws the chart's own pixels below its title and above its legend, on the theme's surface. */
function savePng(metric: string, input: ChartInput, looks: readonly LineLook[], chart: HTMLCanvasElement): void {
  const scale = devicePixelRatio;
  const [top, row] = [32 * scale, 18 * scale];
  const canvas = document.createElement("canvas");
  canvas.width = chart.width;
  canvas.height = top + chart.height + row * input.plot.lines.length + 8 * scale;
  const ctx = canvas.getContext("2d");
  if (!ctx) return;
  const style = getComputedStyle(document.documentElement);
  ctx.fillStyle = style.getPropertyValue("--surface");
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = style.getPropertyValue("--fg");
  ctx.font = `600 ${13 * scale}px Inter, sans-serif`;
  ctx.fillText(metric, 10 * scale, 21 * scale);
  ctx.drawImage(chart, 0, top);
  ctx.font = `${11 * scale}px Inter, sans-serif`;
  input.plot.lines.forEach((line, i) => {
    const y = top + chart.height + row * i + 12 * scale;
    ctx.fillStyle = looks[i]?.color ?? "#888888";
    ctx.fillRect(12 * scale, y - 4 * scale, 14 * scale, 2 * scale);
    ctx.fillStyle = style.getPropertyValue("--fg");
    ctx.fillText(input.nameOf(line), 32 * scale, y);
  });
  canvas.toBlob((blob) => blob && download(`${metric}.png`, blob));
}
