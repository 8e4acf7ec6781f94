import { Download } from "lucide-react";
import type { RefObject } from "react";
import type { MetricChart } from "@/components/chart/metric-chart";
import { Popover } from "@/components/ui/popover";
import { FORMATS, saveChart } from "./export";

interface Props {
  metric: string;
  chart: RefObject<MetricChart | null>;
}

export function ExportMenu({ metric, chart }: Props) {
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
          {FORMATS.map((format) => (
            <button
              key={format}
              type="button"
              className="h-7 px-3 text-left text-xs hover:bg-hover"
              onClick={() => {
                close();
                saveChart(metric, chart.current, format);
              }}
            >
              Save {format.toUpperCase()}
            </button>
          ))}
        </>
      )}
    </Popover>
  );
}
