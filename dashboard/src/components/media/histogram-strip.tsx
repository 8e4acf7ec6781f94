import { type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import type { MediaEntry } from "@/api/wire";
import { formatCount, formatValue } from "@/lib/format";
import { type Histogram, histogramOf, stripOf } from "@/lib/media";
import { useTheme } from "@/stores/theme";

const ROWS = 48;

interface Props {
  label: string;
  entries: readonly MediaEntry[];
  height?: number;
}

/** Histograms over steps: a column per histogram, a cell the darker the more values lie there. */
export function HistogramStrip({ label, entries, height = 144 }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme((state) => state.theme);
  const [tip, setTip] = useState("");
  const histograms = useMemo(() => entries.map((entry) => histogramOf(entry.text)), [entries]);
  const strip = useMemo(() => stripOf(histograms, ROWS), [histograms]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme has another accent
  useEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext("2d");
    if (!element || !ctx || !strip) return;
    element.width = strip.shares.length;
    element.height = ROWS;
    ctx.fillStyle = getComputedStyle(element).getPropertyValue("--accent");
    strip.shares.forEach((column, x) => {
      column.forEach((share, row) => {
        ctx.globalAlpha = Math.sqrt(share); // tails stay visible beside the peak
        ctx.fillRect(x, ROWS - 1 - row, 1, 1);
      });
    });
  }, [strip, theme]);
  const bad = histograms.reduce((sum, one) => sum + (one?.bad ?? 0), 0);
  if (!strip)
    return (
      <p className="px-1 py-6 text-center text-xs text-muted">
        No finite value was logged{bad > 0 ? `: ${formatCount(bad)} were NaN or infinite` : ""}.
      </p>
    );
  const hover = (event: PointerEvent<HTMLCanvasElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const column = Math.min(entries.length - 1, Math.floor(((event.clientX - box.left) / box.width) * entries.length));
    const value = strip.high - ((event.clientY - box.top) / box.height) * (strip.high - strip.low);
    setTip(told(entries[column], histograms[column] ?? null, value));
  };
  return (
    <div className="flex gap-2">
      <div
        className="flex w-14 flex-col justify-between py-0.5 text-right font-mono text-2xs text-faint"
        style={{ height }}
      >
        <span>{formatValue(strip.high)}</span>
        <span>{formatValue(strip.low)}</span>
      </div>
      <div className="min-w-0 flex-1">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${label}: ${entries.length} histograms up to step ${entries.at(-1)?.step ?? 0}, values from ${formatValue(strip.low)} to ${formatValue(strip.high)}${bad > 0 ? `, ${formatCount(bad)} NaN or infinite` : ""}`}
          className="block w-full rounded-md bg-sunken [image-rendering:pixelated]"
          style={{ height }}
          onPointerMove={hover}
          onPointerLeave={() => setTip("")}
        />
        <div className="mt-1 flex h-4 justify-between gap-2 text-2xs text-faint">
          <span>step {formatCount(entries[0]?.step ?? null)}</span>
          <span className="truncate text-fg">{tip}</span>
          <span>step {formatCount(entries.at(-1)?.step ?? null)}</span>
        </div>
        {bad > 0 && <p className="text-2xs text-warn">{formatCount(bad)} values were NaN or infinite.</p>}
      </div>
    </div>
  );
}

function told(entry: MediaEntry | undefined, histogram: Histogram | null, value: number): string {
  if (!entry || !histogram) return "";
  const { bins, counts } = histogram;
  const bin = counts.findIndex((_, i) => value >= (bins[i] ?? 0) && value <= (bins[i + 1] ?? 0));
  const where = bin === -1 ? `0 at ${formatValue(value)}` : `${formatCount(counts[bin] ?? 0)} in ${range(bins, bin)}`;
  return `step ${formatCount(entry.step)} · ${where}`;
}

function range(bins: readonly number[], bin: number): string {
  return `${formatValue(bins[bin] ?? null)} … ${formatValue(bins[bin + 1] ?? null)}`;
}
