import { useMemo } from "react";
import type { ChartHooks, ChartInput } from "@/components/chart/input";
import { metricsOf } from "@/data/plot";
import { seriesStore } from "@/data/series-store";
import type { XKind } from "@/lib/view-codec";
import { useAlerts } from "@/stores/alerts";
import { useCatalog } from "@/stores/catalog";
import { openIncident } from "@/stores/overlay";
import { usePause } from "@/stores/pause";
import { useTheme } from "@/stores/theme";
import { useView } from "@/stores/view";
import { type Look, type Memo, type Only, readChart } from "./read-chart";

export interface Options {
  drawn: readonly string[];
  only?: Only | undefined;
  /** Asked at each draw. */
  look(): Look;
  /** More that a redraw follows, beside points, runs and the page's view. */
  watch?(redraw: () => void): () => void;
  onZoom(zoom: [number, number] | null): void;
  onDrawn?(input: ChartInput): void;
}

/** Stable hooks and subscription for a chart; identity changes only with what is drawn, and with the functions given. */
export function useChart({ drawn, only, look, watch, onZoom, onDrawn }: Options) {
  const names = drawn.join("\n");
  const run = only?.run;
  const rank = only?.rank;
  return useMemo(() => {
    const memo: Memo = { key: "", plot: null };
    const asked = names.split("\n");
    let redraw: (now?: boolean) => void = () => {};
    let pending = false;
    const hooks: ChartHooks = {
      read: (width) => {
        const mine = run === undefined || rank === undefined ? undefined : { run, rank };
        const input = readChart({ drawn: asked, look: look(), width, only: mine, memo, onDetail: () => redraw(true) });
        pending = input.pending;
        return input;
      },
      ...(onDrawn && { onDrawn }),
      onZoom,
      onPick: (line, x) => {
        // A mean of runs, or of a formula, has no moment of its own to explain.
        const [metric = ""] = metricsOf([line.metric]);
        if (line.group === null && !look().xMetric) {
          openIncident({
            run_id: line.run,
            metric,
            worker_id: null,
            title: metric,
            ...locate(line.run, metric, look().x, x),
          });
        }
      },
    };
    const subscribe = (listener: (now?: boolean) => void) => {
      redraw = listener;
      const onPoints = () => {
        // A chart that waits for its first points is no news: it is drawn also while the page is paused.
        if (pending || !usePause.getState().paused) listener();
      };
      const now = () => listener(true);
      const axis = look().xMetric;
      const stops = [
        ...metricsOf(axis ? [...asked, axis] : asked).map((metric) => seriesStore.subscribe(metric, onPoints)),
        useView.subscribe(now),
        useTheme.subscribe(now),
        usePause.subscribe(now),
        useAlerts.subscribe(() => listener()),
        useCatalog.subscribe(() => listener()),
        watch?.(now) ?? (() => {}),
      ];
      return () => {
        for (const stop of stops) stop();
      };
    };
    return { hooks, subscribe };
  }, [names, run, rank, look, watch, onZoom, onDrawn]);
}

/** Step and time of the series' point nearest to an x value, whatever the axis shows. */
function locate(run: string, metric: string, x: XKind, at: number): { step: number | null; time: number | null } {
  const series = seriesStore.of(metric).find((one) => one.head.run_id === run);
  if (!series) return { step: null, time: null };
  const start = useCatalog.getState().runs.find((one) => one.run_id === run)?.start_time_ms ?? series.times.at(0) ?? 0;
  const axis = x === "step" ? series.steps : series.times;
  const wanted = x === "rel" ? at + start : at;
  let best = 0;
  for (let i = 0; i < axis.length; i += 1) {
    if (Math.abs((axis.at(i) ?? 0) - wanted) <= Math.abs((axis.at(best) ?? 0) - wanted)) best = i;
  }
  return { step: series.steps.at(best) ?? null, time: series.times.at(best) ?? null };
}
