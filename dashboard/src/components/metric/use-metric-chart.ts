import { useMemo } from "react";
import type { ChartHooks, ChartInput } from "@/components/chart/input";
import { seriesStore } from "@/data/series-store";
import type { XKind } from "@/lib/view-codec";
import { useAlerts } from "@/stores/alerts";
import { useCatalog } from "@/stores/catalog";
import { openIncident } from "@/stores/overlay";
import { usePause } from "@/stores/pause";
import { useTheme } from "@/stores/theme";
import { useView } from "@/stores/view";
import { type Only, readMetric } from "./read-metric";

interface Options {
  metric: string;
  only?: Only | undefined;
  onDrawn(input: ChartInput): void;
}

/** Stable hooks and subscription for a metric's chart; identity changes only with the metric. */
export function useMetricChart({ metric, only, onDrawn }: Options) {
  const run = only?.run;
  const rank = only?.rank;
  return useMemo(() => {
    let redraw: (now?: boolean) => void = () => {};
    let pending = false;
    const hooks: ChartHooks = {
      read: (width) => {
        const input = readMetric({
          metric,
          width,
          only: run === undefined || rank === undefined ? undefined : { run, rank },
          onDetail: () => redraw(true),
        });
        pending = input.pending;
        return input;
      },
      onDrawn,
      onZoom: (zoom) => useView.getState().set({ zoom }),
      onPick: (line, x) => {
        const at = locate(line.run, metric, useView.getState().x, x);
        openIncident({ run_id: line.run, metric, worker_id: null, title: metric, ...at });
      },
    };
    const subscribe = (listener: (now?: boolean) => void) => {
      redraw = listener;
      const onPoints = () => {
        // A chart that waits for its first points is no news: it is drawn also while the page is paused.
        if (pending || !usePause.getState().paused) listener();
      };
      const now = () => listener(true);
      const stops = [
        seriesStore.subscribe(metric, onPoints),
        useView.subscribe(now),
        useTheme.subscribe(now),
        usePause.subscribe(now),
        useAlerts.subscribe(() => listener()),
        useCatalog.subscribe(() => listener()),
      ];
      return () => {
        for (const stop of stops) stop();
      };
    };
    return { hooks, subscribe };
  }, [metric, run, rank, onDrawn]);
}

/** Step and time of the series' point nearest to an x value, whatever the axis shows. */
function locate(run: string, metric: string, x: XKind, at: number): { step: number | null; time: number | null } {
  const series = seriesStore.of(metric).find((one) => one.head.run_id === run);
  if (!series) return { step: null, time: null };
  const start = useCatalog.getState().runs.find((one) => one.run_id === run)?.start_time_ms ?? series.times[0] ?? 0;
  const axis = x === "step" ? series.steps : series.times;
  const wanted = x === "rel" ? at + start : at;
  let best = 0;
  for (let i = 0; i < axis.length; i += 1) {
    if (Math.abs((axis[i] ?? 0) - wanted) <= Math.abs((axis[best] ?? 0) - wanted)) best = i;
  }
  return { step: series.steps[best] ?? null, time: series.times[best] ?? null };
}
