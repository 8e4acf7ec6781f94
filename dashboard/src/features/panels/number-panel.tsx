import { columnTitle } from "@/lib/column-title";
import { formatValue } from "@/lib/format";
import { isNumber, mean } from "@/lib/stats";
import type { Figure } from "./layout";
import { Note } from "./note";
import { type RunRow, useRunRows } from "./use-run-rows";

export interface Told {
  value: number;
  /** Whose it is, or over how many runs. */
  of: string;
}

/** Rows come newest first. Null where no run has a number. */
export function reduceRows(rows: readonly RunRow[], column: string, reduce: Figure["reduce"]): Told | null {
  const known = rows.filter((row) => isNumber(row.values[column]));
  const at = (row: RunRow) => row.values[column] as number;
  const [first] = known;
  if (!first) return null;
  if (reduce === "mean") return { value: mean(known.map(at)) ?? 0, of: `mean of ${known.length} runs` };
  const better = reduce === "min" ? (a: number, b: number) => a < b : (a: number, b: number) => a > b;
  const found = reduce === "newest" ? first : known.reduce((best, row) => (better(at(row), at(best)) ? row : best));
  return { value: at(found), of: found.name };
}

/** One figure, whose it is, and how far it is from the baseline's. */
export function NumberPanel({ panel }: { panel: Figure }) {
  const { rows, loaded } = useRunRows([panel.column]);
  if (!panel.column) return <Note>Choose the column of the figure.</Note>;
  const told = reduceRows(rows, panel.column, panel.reduce);
  if (told === null) return <Note>{loaded ? "No run on show has a number there." : "Loading…"}</Note>;
  const base = rows.find((row) => row.isBaseline)?.values[panel.column];
  const off = isNumber(base) ? told.value - base : null;
  return (
    <div className="flex h-full flex-col justify-center px-3 pb-1">
      <p className="truncate font-mono text-2xl font-medium" title={`${columnTitle(panel.column)}: ${told.value}`}>
        {formatValue(told.value)}
      </p>
      <p className="truncate text-2xs text-muted" title={told.of}>
        {told.of}
        {off !== null && ` · ${off > 0 ? "+" : ""}${formatValue(off)} to the baseline`}
      </p>
    </div>
  );
}
