import { useEffect, useEffectEvent, useRef } from "react";
import type { ChartHooks } from "./input";
import { MetricChart } from "./metric-chart";
import "./chart.css";

interface Props {
  hooks: ChartHooks;
  /** Told when something the chart shows has changed; `now` for an answer to the user. */
  subscribe(listener: (now?: boolean) => void): () => void;
  label: string;
  height: number;
  onChart?(chart: MetricChart | null): void;
}

/** React's side of a chart: a box that is live only while it is near the screen. Data never passes through here. */
export function Chart({ hooks, subscribe, label, height, onChart }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const island = useRef<MetricChart | null>(null);
  const announce = useEffectEvent((chart: MetricChart | null) => onChart?.(chart));

  useEffect(() => {
    const box = host.current;
    if (!box) return;
    const chart = new MetricChart(box, hooks);
    island.current = chart;
    announce(chart);
    let stop: (() => void) | null = null;
    const show = (visible: boolean) => {
      chart.setVisible(visible);
      if (visible) stop ??= subscribe((now) => chart.invalidate(now));
      else {
        stop?.();
        stop = null;
      }
    };
    const seen = new IntersectionObserver(([entry]) => show(entry?.isIntersecting ?? false), { rootMargin: "300px" });
    const sized = new ResizeObserver(([entry]) => {
      if (entry) chart.resize(entry.contentRect.width, entry.contentRect.height);
    });
    // The observers tell after the frame; what is on the first screen asks for its points in this one.
    const bounds = box.getBoundingClientRect();
    if (bounds.width > 0 && bounds.bottom > 0 && bounds.top < innerHeight) {
      chart.resize(bounds.width, bounds.height);
      show(true);
    }
    seen.observe(box);
    sized.observe(box);
    return () => {
      seen.disconnect();
      sized.disconnect();
      stop?.();
      chart.destroy();
      island.current = null;
      announce(null);
    };
  }, [hooks, subscribe]);

  return (
    <div
      ref={host}
      role="img"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move the crosshair
      tabIndex={0}
      style={{ height }}
      className="strata-chart w-full rounded-sm"
      onKeyDown={(event) => {
        if (event.key === "ArrowLeft") island.current?.nudge(-1);
        if (event.key === "ArrowRight") island.current?.nudge(1);
        if (event.key === "Enter") island.current?.pick();
      }}
    />
  );
}
