import { type RefObject, useCallback, useMemo } from "react";
import { Chart } from "@/components/chart/chart";
import type { MetricChart } from "@/components/chart/metric-chart";
import type { Look } from "@/components/metric/read-chart";
import { useChart } from "@/components/metric/use-chart";
import { MARK } from "@/lib/formula";
import { useView } from "@/stores/view";
import { useBoards, zoomTo } from "./boards";
import type { Line } from "./layout";
import { Note } from "./note";

interface Props {
  panel: Line;
  title: string;
  height: number;
  chart: RefObject<MetricChart | null>;
}

/** Charts with the same axis zoom together. */
function axisOf(panel: Line): string {
  return panel.x === "metric" ? `metric ${panel.x_metric}` : panel.x;
}

function lookOf(panel: Line): Look {
  const { ranks, attempts, range, groupBy, baseline } = useView.getState();
  return {
    x: panel.x === "metric" ? "step" : panel.x,
    xMetric: panel.x === "metric" ? panel.x_metric : "",
    logX: panel.log_x && panel.x !== "wall",
    logY: panel.log_y,
    clip: panel.clip,
    smoothing: panel.smoothing,
    smoothingKind: panel.smoothing_kind,
    zoom: useBoards.getState().zooms[axisOf(panel)] ?? null,
    ...{ ranks, attempts, range, groupBy, baseline },
  };
}

const watchZooms = (redraw: () => void) =>
  useBoards.subscribe((now, old) => {
    if (now.zooms !== old.zooms) redraw();
  });

export function LinePanel({ panel, title, height, chart }: Props) {
  const drawn = useMemo(() => [...panel.metrics, ...panel.formulas.map((formula) => MARK + formula)], [panel]);
  const look = useCallback(() => lookOf(panel), [panel]);
  const axis = axisOf(panel);
  const onZoom = useCallback((zoom: [number, number] | null) => zoomTo(axis, zoom), [axis]);
  const { hooks, subscribe } = useChart({ drawn, look, watch: watchZooms, onZoom });
  if (drawn.length === 0) return <Note>Choose the metrics of this panel.</Note>;
  if (panel.x === "metric" && panel.x_metric === "") return <Note>Choose the metric of the x axis.</Note>;
  return (
    <Chart
      hooks={hooks}
      subscribe={subscribe}
      label={`Chart of ${title}`}
      height={height}
      onChart={(island) => {
        chart.current = island;
      }}
    />
  );
}
