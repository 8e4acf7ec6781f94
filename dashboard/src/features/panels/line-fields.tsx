import { X } from "lucide-react";
import { CurveOptionFields } from "@/components/metric/curve-options";
import { FormulaField } from "@/components/metric/formula-field";
import { Button } from "@/components/ui/button";
import { Select } from "@/components/ui/input";
import { NameList, NamePicker, toChoices } from "@/components/ui/name-picker";
import { useMetricNames } from "@/hooks/metric-names";
import { useShownRuns } from "@/hooks/runs";
import type { Line, Panel } from "./layout";

interface Props {
  draft: Line;
  set(change: Partial<Panel>): void;
}

const AXES: Record<Line["x"], string> = { step: "Step", rel: "Relative time", wall: "Time of day", metric: "A metric" };

export function LineFields({ draft, set }: Props) {
  const choices = toChoices(useMetricNames(useShownRuns()));
  return (
    <>
      <div className="rounded-md border border-line">
        <NameList
          label="Metrics"
          choices={choices}
          chosen={draft.metrics}
          single={false}
          onChange={(metrics) => set({ metrics })}
        />
      </div>
      <FormulaField onAdd={(formula) => set({ formulas: [...new Set([...draft.formulas, formula])] })} />
      {draft.formulas.map((formula) => (
        <p key={formula} className="flex items-center gap-2 font-mono text-xs">
          <span className="min-w-0 truncate">{formula}</span>
          <Button
            look="quiet"
            icon
            className="ml-auto"
            aria-label={`Remove ${formula}`}
            onClick={() => set({ formulas: draft.formulas.filter((other) => other !== formula) })}
          >
            <X size={13} />
          </Button>
        </p>
      ))}
      <div className="flex flex-wrap items-center gap-2">
        <Select aria-label="X axis" value={draft.x} onChange={(event) => set({ x: event.target.value as Line["x"] })}>
          {(Object.keys(AXES) as Line["x"][]).map((axis) => (
            <option key={axis} value={axis}>
              {AXES[axis]}
            </option>
          ))}
        </Select>
        {draft.x === "metric" && (
          <NamePicker
            single
            label="X metric"
            nothing="Choose the x metric"
            choices={choices}
            chosen={draft.x_metric ? [draft.x_metric] : []}
            onChange={([name = ""]) => set({ x_metric: name })}
          />
        )}
      </div>
      <CurveOptionFields
        value={{
          logX: draft.log_x,
          logY: draft.log_y,
          clip: draft.clip,
          smoothing: draft.smoothing,
          smoothingKind: draft.smoothing_kind,
        }}
        onChange={(change) =>
          set({
            log_x: change.logX ?? draft.log_x,
            log_y: change.logY ?? draft.log_y,
            clip: change.clip ?? draft.clip,
            smoothing: change.smoothing ?? draft.smoothing,
            smoothing_kind: change.smoothingKind ?? draft.smoothing_kind,
          })
        }
      />
    </>
  );
}
