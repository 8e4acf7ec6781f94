import { Select } from "@/components/ui/input";
import { NamePicker, toChoices } from "@/components/ui/name-picker";
import type { Bar, Figure, Panel, Parallel, Scatter } from "./layout";
import { useRunRows } from "./use-run-rows";

interface Props {
  draft: Scatter | Bar | Parallel | Figure;
  set(change: Partial<Panel>): void;
}

const REDUCED: Record<Figure["reduce"], string> = {
  newest: "Of the newest run",
  min: "Lowest of all runs",
  max: "Highest of all runs",
  mean: "Mean of all runs",
};

/** Fields of the panels that show columns of the run table. */
export function RunFields({ draft, set }: Props) {
  const choices = toChoices(useRunRows([]).names);
  const one = (label: string, value: string, onChange: (name: string) => void) => (
    <NamePicker
      single
      label={label}
      nothing={`Choose: ${label}`}
      choices={choices}
      chosen={value ? [value] : []}
      onChange={([name = ""]) => onChange(name)}
    />
  );
  const flag = (label: string, name: "log_x" | "log_y", on: boolean) => (
    <label className="flex items-center gap-1.5 text-xs">
      <input type="checkbox" checked={on} onChange={() => set({ [name]: !on })} /> {label}
    </label>
  );
  return (
    // As high as an open list, so that it is never cut off.
    <div className="flex min-h-80 flex-col items-start gap-3">
      {draft.kind === "scatter" && (
        <>
          {one("X axis", draft.x, (x) => set({ x } as Partial<Panel>))}
          {one("Y axis", draft.y, (y) => set({ y } as Partial<Panel>))}
          {flag("Log x", "log_x", draft.log_x)}
          {flag("Log y", "log_y", draft.log_y)}
        </>
      )}
      {(draft.kind === "bar" || draft.kind === "number") && one("Column", draft.column, (column) => set({ column }))}
      {draft.kind === "number" && (
        <Select
          aria-label="Of which runs"
          value={draft.reduce}
          onChange={(event) => set({ reduce: event.target.value as Figure["reduce"] })}
        >
          {(Object.keys(REDUCED) as Figure["reduce"][]).map((how) => (
            <option key={how} value={how}>
              {REDUCED[how]}
            </option>
          ))}
        </Select>
      )}
      {draft.kind === "parallel" && (
        <>
          <NamePicker
            label="Columns"
            nothing="Choose: Columns"
            choices={choices}
            chosen={draft.columns}
            onChange={(columns) => set({ columns: columns.slice(0, 12) })}
          />
          {one("Target", draft.target, (target) => set({ target }))}
        </>
      )}
    </div>
  );
}
