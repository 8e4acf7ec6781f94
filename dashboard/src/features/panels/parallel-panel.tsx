import { useSize } from "@/hooks/size";
import { columnTitle } from "@/lib/column-title";
import { type Importance, importanceOf } from "@/lib/stats";
import { type Axis, axisFor } from "./axis";
import type { Parallel } from "./layout";
import { Note } from "./note";
import { type RunRow, useRunRows } from "./use-run-rows";

const [SIDE, TOP, BOTTOM] = [40, 22, 12];
const MOST = 1000;

/** A line per run through its values, from the columns to the target, and how much each column tells about it. */
export function ParallelPanel({ panel, title }: { panel: Parallel; title: string }) {
  const columns = [...panel.columns.filter((name) => name !== panel.target), panel.target].filter(Boolean);
  const { rows, loaded } = useRunRows(columns);
  if (columns.length < 2 || !panel.target) return <Note>Choose columns, and a target that they may explain.</Note>;
  if (rows.length === 0) return <Note>{loaded ? "No run is on show." : "Loading…"}</Note>;
  const target = rows.map((row) => row.values[panel.target]);
  const told = columns
    .slice(0, -1)
    .map((name) =>
      importanceOf(
        name,
        rows.map((row) => row.values[name]),
        target,
      ),
    )
    .sort((a, b) => (b.share ?? -1) - (a.share ?? -1));
  return (
    <div className="flex h-full min-h-0 gap-2 max-md:flex-col">
      <Lines label={`${title}: ${rows.length} runs over ${columns.length} axes`} columns={columns} rows={rows} />
      <ImportanceList told={told} target={panel.target} num={rows.length} />
    </div>
  );
}

function Lines({ label, columns, rows }: { label: string; columns: readonly string[]; rows: readonly RunRow[] }) {
  const [box, { width, height }] = useSize<HTMLDivElement>();
  const axes = columns.map((name) => axisFor(rows.map((row) => row.values[name])));
  const x = (i: number) => SIDE + (i * (width - 2 * SIDE)) / (columns.length - 1);
  const y = (share: number) => height - BOTTOM - share * (height - TOP - BOTTOM);
  return (
    <div ref={box} className="relative min-h-0 min-w-0 flex-1">
      {width > 0 && (
        <svg role="img" aria-label={label} width={width} height={height} className="absolute inset-0 text-2xs">
          {rows.slice(0, MOST).map((row) => (
            <path
              key={row.run.run_id}
              data-run={row.run.run_id}
              d={pathOf(row, columns, axes, x, y)}
              fill="none"
              stroke={row.isBaseline ? "var(--fg)" : row.color}
              strokeWidth={row.isBaseline ? 2.5 : 1.5}
              strokeOpacity={0.7}
            >
              <title>{row.name}</title>
            </path>
          ))}
          {axes.map((axis, i) => (
            <g key={columns[i]}>
              <line x1={x(i)} x2={x(i)} y1={TOP} y2={height - BOTTOM} stroke="var(--line-strong)" />
              <text x={x(i)} y={12} textAnchor="middle" fill="var(--fg)">
                {columnTitle(columns[i] ?? "").slice(-18)}
              </text>
              {axis.ticks.map(({ at, label: text }) => (
                <text key={`${text} ${at}`} x={x(i) + 4} y={y(at) + 3} fill="var(--muted)">
                  {text.slice(0, 12)}
                </text>
              ))}
            </g>
          ))}
        </svg>
      )}
    </div>
  );
}

/** A value that a run lacks lifts the pen: the line never passes through a guess. */
export function pathOf(
  row: Pick<RunRow, "values">,
  columns: readonly string[],
  axes: readonly Axis[],
  x: (i: number) => number,
  y: (share: number) => number,
): string {
  let path = "";
  let pen = "M";
  columns.forEach((name, i) => {
    const share = axes[i]?.place(row.values[name]) ?? null;
    if (share !== null) path += `${pen}${x(i).toFixed(1)} ${y(share).toFixed(1)}`;
    pen = share === null ? "M" : "L";
  });
  return path;
}

function ImportanceList({ told, target, num }: { told: readonly Importance[]; target: string; num: number }) {
  return (
    <section
      aria-label="Importance"
      className="w-44 shrink-0 overflow-y-auto pr-3 text-2xs max-md:max-h-24 max-md:w-full"
    >
      <h3
        className="font-medium text-muted"
        title="Rank correlation (Spearman) for numbers, correlation ratio for words; 0 to 1"
      >
        Importance for {columnTitle(target)}
      </h3>
      {num > MOST && (
        <p className="text-muted">
          of {num} runs; the newest {MOST} are drawn
        </p>
      )}
      <ul className="mt-1 flex flex-col gap-1">
        {told.map(({ column, share, sign, kind, count }) => (
          <li key={column} title={`${kind} over ${count} runs`}>
            <span className="flex justify-between gap-2">
              <span className="truncate">{columnTitle(column)}</span>
              <span className="font-mono">
                {share === null ? "–" : `${sign > 0 ? "+" : sign < 0 ? "−" : ""}${share.toFixed(2)}`}
              </span>
            </span>
            <span aria-hidden="true" className="block h-1 rounded-full bg-sunken">
              <span className="block h-1 rounded-full bg-accent" style={{ width: `${(share ?? 0) * 100}%` }} />
            </span>
            <span className="text-muted">{kind}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
