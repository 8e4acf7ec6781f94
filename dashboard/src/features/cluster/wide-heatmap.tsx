import { useState } from "react";
import type { RunInfo } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { describe } from "@/components/ui/confirm";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Select } from "@/components/ui/input";
import { Panel } from "@/components/ui/panel";
import { formatCount } from "@/lib/format";
import { displayName } from "@/stores/catalog";
import { openIncident } from "@/stores/overlay";
import { HeatLegend } from "./heat-legend";
import { useWideHeat } from "./use-wide-heat";
import { WideCanvas } from "./wide-canvas";
import { describeWide } from "./wide-heat";

/** More rows than this nobody can point at. */
const ROWS = 200;

/** Thousands of ranks: each row stands for some, and shows the one that is farthest from the median. */
export function WideHeatmap({ run }: { run: RunInfo }) {
  const [metric, setMetric] = useState("");
  const [ranks, setRanks] = useState<readonly [number, number] | null>(null);
  const { heat, error } = useWideHeat({ run: run.run_id, metric, rows: ROWS, ranks });
  const last = heat?.last;
  if (!heat || !last) {
    return error ? (
      <Empty tone="bad" title="The heatmap could not be read">
        {describe(error)}
      </Empty>
    ) : (
      <Skeleton rows={8} />
    );
  }
  const columns = heat.columns();
  const range = ranks ? `ranks ${ranks[0]} to ${ranks[1]}` : `${formatCount(last.num_ranks)} ranks`;
  return (
    <Panel
      title={displayName(run)}
      note={`${range} · last ${columns.length} logged steps · colour is the ratio to the step's median`}
      actions={
        <>
          {ranks && <Button onClick={() => setRanks(null)}>All ranks</Button>}
          <Select
            aria-label="Metric"
            value={last.metric ?? ""}
            onChange={(event) => {
              setMetric(event.target.value);
              setRanks(null);
            }}
          >
            {last.metrics.map(({ metric: name }) => (
              <option key={name}>{name}</option>
            ))}
          </Select>
        </>
      }
    >
      <WideCanvas
        heat={last}
        columns={columns}
        onBack={() => setRanks(null)}
        onPick={(row, column) => {
          const [first, final] = [last.first_ranks[row], last.last_ranks[row]];
          if (first === undefined || final === undefined) return;
          if (first !== final) return setRanks([first, final]);
          openIncident({
            run_id: run.run_id,
            step: columns[column]?.step ?? null,
            time: null,
            metric: last.metric ?? "",
            title: `${last.metric} at rank ${first}`,
            worker_id: null,
          });
        }}
      />
      <p className="mt-3 text-xs">{describeWide(columns)}</p>
      <HeatLegend
        metric={last.metric ?? ""}
        click="Each row shows its rank that is farthest from the median; click it to see its ranks one by one."
      />
    </Panel>
  );
}
