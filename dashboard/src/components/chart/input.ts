/** What a chart is given at each draw, and what it tells back. */
import type { Line, Plot } from "@/data/line";
import type { View } from "@/lib/view-codec";
import type { Mark } from "./marks";

/** How a chart looks at its lines. */
export interface ChartView extends Pick<View, "x" | "logX" | "logY" | "clip" | "smoothing" | "smoothingKind" | "zoom"> {
  /** The metric on the x axis; empty: x is what `x` says. */
  xMetric: string;
  /** The run that is drawn above the others; empty: none. */
  baseline: string;
}

export interface ChartInput {
  plot: Plot;
  view: ChartView;
  marks: readonly Mark[];
  /** The runs on show that have this metric, whether or not their points are here. */
  runs: ReadonlySet<string>;
  /** True while points of some line are still on their way. */
  pending: boolean;
  nameOf(line: Line): string;
}

export interface ChartHooks {
  /** Called once per draw with the chart's width in pixels; whatever it returns is drawn. */
  read(width: number): ChartInput;
  onDrawn?(input: ChartInput): void;
  onZoom?(zoom: [number, number] | null): void;
  /** A click or Enter on a line, at an x of the axis. */
  onPick?(line: Line, x: number): void;
}
