import { SlidersHorizontal, X } from "lucide-react";
import { CurveOptionFields } from "@/components/metric/curve-options";
import { FormulaField } from "@/components/metric/formula-field";
import { Button } from "@/components/ui/button";
import { Popover } from "@/components/ui/popover";
import { DEFAULT_VIEW } from "@/lib/view-codec";
import { useView } from "@/stores/view";

/** What is set once in a while: axes, outliers, the kind of smoothing, and charts that are computed. */
export function ChartMenu() {
  const view = useView();
  const setFormulas = (formulas: readonly string[]) =>
    view.set({ formulas: formulas.length > 0 ? formulas : DEFAULT_VIEW.formulas });
  return (
    <Popover
      label="Chart options"
      className="w-80 max-sm:fixed max-sm:inset-x-3 max-sm:top-24 max-sm:w-auto"
      trigger={
        <>
          <SlidersHorizontal size={13} aria-hidden="true" /> Chart
        </>
      }
    >
      <div className="flex flex-col gap-4 p-3">
        <CurveOptionFields value={view} onChange={(change) => view.set(change)} />
        <FormulaField onAdd={(formula) => setFormulas([...new Set([...view.formulas, formula])])} />
        {view.formulas.length > 0 && (
          <ul aria-label="Formulas" className="flex flex-col gap-1">
            {view.formulas.map((formula) => (
              <li key={formula} className="flex items-center gap-2 font-mono text-xs">
                <span className="min-w-0 truncate" title={formula}>
                  {formula}
                </span>
                <Button
                  look="quiet"
                  icon
                  className="ml-auto"
                  aria-label={`Remove ${formula}`}
                  onClick={() => setFormulas(view.formulas.filter((other) => other !== formula))}
                >
                  <X size={13} />
                </Button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Popover>
  );
}
