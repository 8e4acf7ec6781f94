/** Writes a metric's newest value into the card without React, and touches the DOM only where something changed. */
import type { ChartInput } from "@/components/chart/input";
import type { MetricChart } from "@/components/chart/metric-chart";
import type { Latest } from "./latest";

interface Places {
  value: HTMLElement | null;
  unit: HTMLElement | null;
}

export function showLatest({ value, unit }: Places, latest: Latest, color: string | null): void {
  if (!value || !unit) return;
  if (value.textContent !== latest.text) value.textContent = latest.text;
  if (unit.textContent !== latest.unit) unit.textContent = latest.unit;
  const nans = latest.nanCount > 0 ? `, ${latest.nanCount} NaN or Inf so far` : "";
  const title = `Newest value${latest.run === null ? "" : ` of ${latest.run}`}${nans}`;
  if (value.title !== title) value.title = title;
  value.classList.toggle("text-bad", latest.bad);
  const shadow = color === null ? "" : `inset 0 -2px ${color}`;
  if (value.dataset["shadow"] !== shadow) {
    value.dataset["shadow"] = shadow;
    value.style.boxShadow = shadow;
  }
}

/** The colour of the run that the value belongs to; null when there is only one run. */
export function colorOf(chart: MetricChart | null, { plot }: ChartInput, run: string | null): string | null {
  if (new Set(plot.lines.map((line) => line.run)).size < 2) return null;
  return chart?.looks[plot.lines.findIndex((line) => line.run === run)]?.color ?? null;
}
