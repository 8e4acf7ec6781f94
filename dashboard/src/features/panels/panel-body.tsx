import type { RefObject } from "react";
import type { MetricChart } from "@/components/chart/metric-chart";
import { Markdown } from "@/components/media/markdown";
import { BarPanel } from "./bar-panel";
import type { Panel } from "./layout";
import { LinePanel } from "./line-panel";
import { MediaPanel } from "./media-panel";
import { Note } from "./note";
import { NumberPanel } from "./number-panel";
import { ParallelPanel } from "./parallel-panel";
import { ScatterPanel } from "./scatter-panel";

interface Props {
  panel: Panel;
  title: string;
  height: number;
  chart: RefObject<MetricChart | null>;
}

export function PanelBody({ panel, title, height, chart }: Props) {
  switch (panel.kind) {
    case "line":
      return <LinePanel panel={panel} title={title} height={height} chart={chart} />;
    case "scatter":
      return <ScatterPanel panel={panel} title={title} />;
    case "bar":
      return <BarPanel panel={panel} title={title} />;
    case "parallel":
      return <ParallelPanel panel={panel} title={title} />;
    case "number":
      return <NumberPanel panel={panel} />;
    case "markdown":
      return panel.text.trim() === "" ? (
        <Note>Write something: edit this panel.</Note>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        <section aria-label={title} tabIndex={0} className="h-full overflow-y-auto px-3 py-1">
          <Markdown text={panel.text} />
        </section>
      );
    case "histogram":
    case "image":
    case "table":
      return <MediaPanel panel={panel} title={title} />;
    default:
      return (
        <Note>This page does not know panels of the kind “{(panel as { kind: string }).kind}”. A newer one may.</Note>
      );
  }
}
