import { ChevronLeft, ChevronRight } from "lucide-react";
import { useEffect, useState } from "react";
import { formatX } from "@/components/chart/axis";
import { saveCsv } from "@/components/metric/export";
import { latestOf } from "@/components/metric/latest";
import { MetricCard } from "@/components/metric/metric-card";
import { readMetric } from "@/components/metric/read-chart";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { RunSwatch } from "@/components/ui/run-swatch";
import { valueAt } from "@/data/line";
import { useNow } from "@/hooks/now";
import { useRunsOnShow } from "@/hooks/runs";
import { cx } from "@/lib/cx";
import { formatValue } from "@/lib/format";
import { plainName } from "@/lib/formula";
import { displayName } from "@/stores/catalog";
import { useView } from "@/stores/view";
import type { MetricEntry } from "./use-metrics";

const ROWS = 500;

/** Read anew each second: its points may be on their way when it is opened, and more may follow. */
function PointTable({ metric }: { metric: string }) {
  useNow(1000);
  const input = readMetric(metric, { width: 1000, onDetail: () => {} });
  const { plot, view, nameOf } = input;
  const from = Math.max(0, plot.x.length - ROWS);
  return (
    <div className="max-h-[60vh] overflow-auto rounded-md border border-line">
      <table className="w-full text-xs">
        <thead className="sticky top-0 bg-sunken text-left text-2xs text-faint">
          <tr>
            <th className="px-3 py-1.5 font-medium">{view.xMetric || view.x}</th>
            {plot.lines.map((line) => (
              <th key={line.key} className="px-3 py-1.5 text-right font-medium whitespace-nowrap">
                {nameOf(line)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="font-mono">
          {plot.x.slice(from).map((x, i) => (
            <tr key={x} className="border-t border-line">
              <td className="px-3 py-1 whitespace-nowrap">{formatX(view, x)}</td>
              {plot.lines.map((line) => {
                const y = valueAt(line, from + i);
                return (
                  <td key={line.key} className={`px-3 py-1 text-right ${y === null ? "text-bad" : ""}`}>
                    {y === undefined ? "" : y === null ? "NaN" : formatValue(y)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Which line is whose, with the newest value of each; the badges lie behind this view. */
function Legend({ metric }: { metric: string }) {
  useNow(1000);
  const runs = useRunsOnShow();
  return (
    <ul className="flex max-h-28 flex-wrap gap-x-4 gap-y-1 overflow-y-auto text-xs">
      {runs.map((run) => {
        const latest = latestOf(metric, [run.run_id]);
        if (latest.run === null) return null;
        return (
          <li key={run.run_id} className="flex items-center gap-1.5">
            <RunSwatch run={run.run_id} />
            <span className="max-w-60 truncate">{displayName(run)}</span>
            <span className={cx("font-mono", latest.bad ? "text-bad" : "text-muted")}>
              {latest.text} {latest.unit}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

/** One metric over the whole window; arrow keys go to its neighbours, the table is the same data in words. */
export function FullView({ metric, metrics }: { metric: string; metrics: readonly MetricEntry[] }) {
  const { set } = useView.getState();
  const [table, setTable] = useState(false);
  const at = metrics.findIndex((one) => one.name === metric);
  const step = (by: number) => {
    const next = metrics[(at + by + metrics.length) % metrics.length];
    if (next) set({ focus: next.name });
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.target instanceof HTMLElement && event.target.role === "img") return;
      if (event.key === "ArrowRight") step(1);
      if (event.key === "ArrowLeft") step(-1);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  return (
    <Dialog title={plainName(metric)} onClose={() => set({ focus: "" })} className="mt-[4vh]! max-w-[1400px]!">
      <div className="flex flex-col gap-2 p-3">
        <div className="flex items-center gap-2">
          <Button icon aria-label="Previous metric" onClick={() => step(-1)}>
            <ChevronLeft size={14} />
          </Button>
          <Button icon aria-label="Next metric" onClick={() => step(1)}>
            <ChevronRight size={14} />
          </Button>
          <span className="text-xs text-faint">
            {at + 1} of {metrics.length}
          </span>
          <Button className="ml-auto" aria-pressed={table} onClick={() => setTable(!table)}>
            {table ? "View as chart" : "View as table"}
          </Button>
          <Button onClick={() => saveCsv(plainName(metric), readMetric(metric, { width: 1000, onDetail: () => {} }))}>
            Save CSV
          </Button>
        </div>
        {table ? (
          <PointTable metric={metric} />
        ) : (
          <>
            <MetricCard key={metric} metric={metric} height={Math.max(260, innerHeight * 0.6)} bare />
            <Legend metric={metric} />
          </>
        )}
      </div>
    </Dialog>
  );
}
