import { useLocation } from "wouter";
import { columnTitle } from "@/lib/column-title";
import { formatValue } from "@/lib/format";
import { pathOf } from "@/lib/routes";
import { addressOf } from "@/stores/view";
import { axisFor } from "./axis";
import type { Scatter } from "./layout";
import { Note } from "./note";
import { Plane } from "./plane";
import { type RunRow, useRunRows } from "./use-run-rows";

const MOST = 2000;

/** A point per run; a click opens it. Runs that lack one of both values are counted, not hidden. */
export function ScatterPanel({ panel, title }: { panel: Scatter; title: string }) {
  const { rows, loaded } = useRunRows([panel.x, panel.y]);
  const [, navigate] = useLocation();
  if (!panel.x || !panel.y) return <Note>Choose a column for each axis.</Note>;
  const x = axisFor(
    rows.map((row) => row.values[panel.x]),
    panel.log_x,
  );
  const y = axisFor(
    rows.map((row) => row.values[panel.y]),
    panel.log_y,
  );
  const placed = rows.flatMap((row) => {
    const at = { x: x.place(row.values[panel.x]), y: y.place(row.values[panel.y]) };
    return at.x === null || at.y === null ? [] : [{ row, x: at.x, y: at.y }];
  });
  if (placed.length === 0) return <Note>{loaded ? "No run on show has both values." : "Loading…"}</Note>;
  const left = rows.length - placed.length;
  const notes = [
    left > 0 && `${left} of ${rows.length} runs lack a value`,
    placed.length > MOST && `the newest ${MOST} of ${placed.length} are drawn`,
  ];
  return (
    <Plane
      label={`${title}: ${placed.length} runs, ${panel.y} over ${panel.x}`}
      x={{ axis: x, title: columnTitle(panel.x) }}
      y={{ axis: y, title: columnTitle(panel.y) }}
      note={notes.filter(Boolean).join(" · ")}
    >
      {(scale) =>
        placed.slice(0, MOST).map(({ row, x, y }) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: the run table has the same links for the keyboard
          <circle
            key={row.run.run_id}
            data-run={row.run.run_id}
            cx={scale.x(x)}
            cy={scale.y(y)}
            r={row.isBaseline ? 6 : 4}
            fill={row.color}
            fillOpacity={0.75}
            stroke={row.isBaseline ? "var(--fg)" : row.color}
            strokeWidth={row.isBaseline ? 2 : 1}
            className="cursor-pointer"
            onClick={() => navigate(addressOf(pathOf("runs", row.run.run_id)))}
          >
            <title>{sentence(row, panel)}</title>
          </circle>
        ))
      }
    </Plane>
  );
}

function sentence(row: RunRow, panel: Scatter): string {
  const text = (value: unknown) => (typeof value === "number" ? formatValue(value) : String(value));
  const values = [panel.x, panel.y].map((name) => `${columnTitle(name)} ${text(row.values[name])}`);
  return [row.name, row.group, ...values].filter(Boolean).join(" · ");
}
