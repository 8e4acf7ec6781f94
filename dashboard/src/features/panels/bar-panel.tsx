import { formatValue } from "@/lib/format";
import { groupBy } from "@/lib/group-by";
import { isNumber, mean, spread } from "@/lib/stats";
import type { Bar as BarRecord } from "./layout";
import { Note } from "./note";
import { type RunRow, useRunRows } from "./use-run-rows";

const MOST = 200;

export interface Bar {
  key: string;
  name: string;
  color: string;
  value: number;
  /** Standard deviation of a group; 0 for one run. */
  around: number;
}

/** The largest first: a bar per run, or the mean of each group. Runs without the value have none. */
export function barsOf(rows: readonly RunRow[], column: string): Bar[] {
  const known = rows.filter((row) => isNumber(row.values[column]));
  const groups = groupBy(known, (row) => row.group || row.run.run_id);
  return [...groups]
    .map(([key, members]): Bar => {
      const values = members.map((row) => row.values[column] as number);
      const [first] = members;
      const name = first?.group ? `${first.group} · ${members.length} runs` : (first?.name ?? key);
      return { key, name, color: first?.color ?? "", value: mean(values) ?? 0, around: spread(values) };
    })
    .sort((a, b) => b.value - a.value);
}

export function BarPanel({ panel, title }: { panel: BarRecord; title: string }) {
  const { rows, loaded } = useRunRows([panel.column]);
  if (!panel.column) return <Note>Choose the column of the bars.</Note>;
  const bars = barsOf(rows, panel.column);
  if (bars.length === 0) return <Note>{loaded ? "No run on show has a number there." : "Loading…"}</Note>;
  const low = Math.min(0, ...bars.map((bar) => bar.value - bar.around));
  const high = Math.max(0, ...bars.map((bar) => bar.value + bar.around));
  const share = (value: number) => (high === low ? 0 : ((value - low) / (high - low)) * 100);
  return (
    <ul aria-label={title} className="flex h-full flex-col gap-1 overflow-y-auto px-3 py-1 text-xs">
      {bars.slice(0, MOST).map((bar) => (
        <li key={bar.key} className="grid grid-cols-[minmax(0,30%)_1fr_auto] items-center gap-2">
          <span className="truncate" title={bar.name}>
            {bar.name}
          </span>
          <span aria-hidden="true" className="relative h-3.5 rounded-sm bg-sunken">
            <span
              className="absolute inset-y-0 rounded-sm"
              style={{
                left: `${share(Math.min(0, bar.value))}%`,
                width: `${Math.abs(share(bar.value) - share(0))}%`,
                background: bar.color,
              }}
            />
            {bar.around > 0 && (
              <span
                className="absolute top-1.5 h-0.5 bg-fg"
                style={{ left: `${share(bar.value - bar.around)}%`, width: `${share(low + 2 * bar.around)}%` }}
              />
            )}
          </span>
          <span className="font-mono">
            {formatValue(bar.value)}
            {bar.around > 0 && <span className="text-muted"> ± {formatValue(bar.around)}</span>}
          </span>
        </li>
      ))}
      {bars.length > MOST && (
        <li className="text-faint">
          the largest {MOST} of {bars.length}
        </li>
      )}
    </ul>
  );
}
