import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import type { Heat } from "@/api/wire";
import { formatValue } from "@/lib/format";
import { useTheme } from "@/stores/theme";
import { heatRgb } from "./heatmap";
import { ranksText } from "./wide-heat";

const HEIGHT = 420;
const TALLEST_ROW = 28;
const DARKEST = 400;
const LABELS = 6;

interface Props {
  heat: Heat;
  columns: Heat["columns"];
  onPick(row: number, column: number): void;
  onBack(): void;
}

/** One pixel per cell, stretched. Twenty thousand cells are written in about a millisecond, so all of them are. */
export function WideCanvas({ heat, columns, onPick, onBack }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = useTheme((state) => state.theme) === "dark";
  const [at, setAt] = useState<{ row: number; column: number } | null>(null);
  const rows = heat.first_ranks.length;
  const palette = useMemo(() => Array.from({ length: DARKEST + 1 }, (_, i) => heatRgb(i / 100, dark)), [dark]);
  useEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext("2d");
    if (!element || !ctx || columns.length === 0 || rows === 0) return;
    element.width = columns.length;
    element.height = rows;
    const image = ctx.createImageData(columns.length, rows);
    columns.forEach(({ ratios }, x) => {
      for (let y = 0; y < rows; y += 1) {
        const ratio = ratios[y];
        if (ratio === null || ratio === undefined) continue;
        const color = palette[Math.max(0, Math.min(DARKEST, ratio))];
        if (color) image.data.set([...color, 255], 4 * (y * columns.length + x));
      }
    });
    ctx.putImageData(image, 0, 0);
  }, [columns, rows, palette]);
  const height = Math.min(HEIGHT, rows * TALLEST_ROW);
  const under = (event: PointerEvent<HTMLCanvasElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const place = (part: number, of: number) => Math.max(0, Math.min(of - 1, Math.floor(part * of)));
    return {
      column: place((event.clientX - box.left) / box.width, columns.length),
      row: place((event.clientY - box.top) / box.height, rows),
    };
  };
  const onKey = (event: KeyboardEvent) => {
    const [dx, dy] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key] ?? [];
    if (event.key === "Enter" && at) onPick(at.row, at.column);
    else if (event.key === "Escape") onBack();
    else if (dx === undefined || dy === undefined) return;
    else {
      const { row, column } = at ?? { row: 0, column: columns.length - 1 };
      const within = (place: number, of: number) => Math.max(0, Math.min(of - 1, place));
      setAt({ row: within(row + dy, rows), column: within(column + dx, columns.length) });
    }
    event.preventDefault();
  };
  const cell = at ? columns[at.column] : undefined;
  const labelled = Array.from({ length: Math.min(LABELS, rows) }, (_, i) =>
    Math.floor((i * rows) / Math.min(LABELS, rows)),
  );
  return (
    <div className="flex gap-2">
      <ul aria-hidden="true" className="relative w-14 shrink-0 text-2xs text-faint" style={{ height }}>
        {labelled.map((row) => (
          <li key={row} className="absolute right-0 -translate-y-px" style={{ top: (row / rows) * height }}>
            {heat.first_ranks[row]}
          </li>
        ))}
      </ul>
      <div className="min-w-0 flex-1">
        <div
          role="application"
          aria-label={`Heatmap of ${heat.metric}: ${heat.num_ranks} ranks in ${rows} rows, ${columns.length} steps up to ${heat.steps.at(-1) ?? 0}. Arrow keys move, Enter goes deeper, Escape back.`}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys walk over the picture
          tabIndex={0}
          onKeyDown={onKey}
          className="relative focus-visible:outline-2 focus-visible:outline-offset-2 focus-visible:outline-accent"
        >
          <canvas
            ref={canvas}
            data-heat={heat.version}
            className="block w-full cursor-crosshair [image-rendering:pixelated]"
            style={{ height }}
            onPointerMove={(event) => setAt(under(event))}
            onPointerLeave={() => setAt(null)}
            onPointerUp={(event) => {
              const { row, column } = under(event);
              onPick(row, column);
            }}
          />
          {at && (
            <span
              aria-hidden="true"
              className="pointer-events-none absolute border border-fg"
              style={{
                left: `${(100 * at.column) / columns.length}%`,
                top: (at.row / rows) * height,
                width: `${100 / columns.length}%`,
                height: Math.max(3, height / rows),
              }}
            />
          )}
        </div>
        <div className="mt-1 flex justify-between gap-2 text-2xs text-faint">
          <span>step {heat.steps[0]?.toLocaleString("en-US")}</span>
          <span role="status" className="text-fg">
            {at && cell ? says(heat, cell, at.row) : ""}
          </span>
          <span>step {heat.steps.at(-1)?.toLocaleString("en-US")}</span>
        </div>
      </div>
    </div>
  );
}

function says(heat: Heat, column: Heat["columns"][number], row: number): string {
  const ratio = column.ratios[row] ?? null;
  const value =
    ratio === null || column.median === null
      ? "nothing logged"
      : `${(ratio / 100).toFixed(2)}× the median of ${formatValue(column.median)}`;
  return `step ${column.step} · ${ranksText(heat, row)} · ${value}`;
}
