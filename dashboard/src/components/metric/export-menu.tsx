import { Download } from "lucide-react";
import type { RefObject } from "react";
import type { MetricChart } from "@/components/chart/metric-chart";
import { Popover } from "@/components/ui/popover";
import { saveCsv, savePng } from "./export";

interface Props {
  metric: string;
  chart: RefObject<MetricChart | null>;
}

export function ExportMenu({ metric, chart }: Props) {
  const run = (kind: "csv" | "png", close: () => void) => {
    close();
    const island = chart.current;
    if (!island?.input) return;
    if (kind === "csv") saveCsv(metric, island.input);
    else if (island.canvas) savePng(metric, island.input, island.looks, island.canvas);
  };
  return (
    <Popover
      label={`Export ${metric}`}
      align="right"
      triggerClassName="border-transparent! bg-transparent! px-2! text-muted hover:bg-hover!"
      trigger={<Download size={13} />}
      className="flex w-28 flex-col py-1"
    >
      {(close) => (
        <>
          {(["csv", "png"] as const).map((kind) => (
            <button
              key={kind}
              type="button"
              className="h-7 px-3 text-left text-xs hover:bg-hover"
              onClick={() => run(kind, close)}
            >
              Save {kind.toUpperCase()}
            </button>
          ))}
        </>
      )}
    </Popover>
  );
}
