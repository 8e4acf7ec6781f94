import { useMemo, useState } from "react";
import type { RunInfo } from "@/api/wire";
import { Empty } from "@/components/ui/empty";
import { Select } from "@/components/ui/input";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { pointLoader } from "@/data/loader";
import { seriesStore } from "@/data/series-store";
import { useMetricNames } from "@/hooks/metric-names";
import { useNow } from "@/hooks/now";
import { useLeadRun } from "@/hooks/runs";
import { displayName } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import { HEAT_ROW, HeatCanvas } from "./heat-canvas";
import { HeatLegend } from "./heat-legend";
import { buildHeat, describeHeat } from "./heatmap";
import { WideHeatmap } from "./wide-heatmap";

const WINDOW = 600;
const HEAT_POINTS = 2000;

export function HeatmapTab() {
  const run = useLeadRun();
  return run && Object.keys(run.wide_metrics ?? {}).length > 0 ? (
    <WideHeatmap key={run.run_id} run={run} />
  ) : (
    <NarrowHeatmap run={run} />
  );
}

/** Few enough ranks that the stream brings all of them. */
function NarrowHeatmap({ run }: { run: RunInfo | null }) {
  useNow(1000);
  const id = run?.run_id;
  const names = useMetricNames(useMemo(() => (id === undefined ? [] : [id]), [id]));
  const [picked, setPicked] = useState("");
  const workers = useCluster((state) => state.workers);
  const options = names.filter((name) => seriesStore.count(name, id ?? "") > 1);
  const metric = options.includes(picked)
    ? picked
    : (options.find((name) => name.startsWith("step_time")) ?? options[0]);
  if (!run || !metric) {
    return (
      <Empty title="No metric with several ranks">
        Log one from every rank, such as step_time, and its ranks appear here as rows.
      </Empty>
    );
  }
  const series = seriesStore
    .of(metric)
    .filter((one) => one.head.run_id === run.run_id && pointLoader.want(one, HEAT_POINTS));
  const heat = buildHeat(series, 150, WINDOW);
  const workerOf = (rank: number) =>
    workers.find((one) => one.rank === rank && (one.current_task === run.task_id || !run.task_id));
  return (
    <Panel
      title={displayName(run)}
      note={`last ${WINDOW} steps · colour is the ratio to the step's median`}
      actions={
        <Select aria-label="Metric" value={metric} onChange={(event) => setPicked(event.target.value)}>
          {options.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
      }
    >
      <div className="flex gap-2">
        <ul className="shrink-0 text-xs">
          {heat.ranks.map((rank) => {
            const worker = workerOf(rank);
            return (
              <li key={rank} style={{ height: HEAT_ROW }} className="flex items-center justify-end">
                {worker ? (
                  <PageLink page="cluster" id={worker.id} className="hover:underline">
                    rank {rank}
                  </PageLink>
                ) : (
                  `rank ${rank}`
                )}
              </li>
            );
          })}
        </ul>
        <HeatCanvas heat={heat} metric={metric} run={run.run_id} />
      </div>
      <p className="mt-3 text-xs">{describeHeat(heat)}</p>
      <HeatLegend metric={metric} click="Click a cell for what happened at that step." />
    </Panel>
  );
}
