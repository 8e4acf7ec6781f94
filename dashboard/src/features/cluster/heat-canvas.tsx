import { type PointerEvent, useEffect, useRef, useState } from "react";
import { formatValue } from "@/lib/format";
import { openIncident } from "@/stores/overlay";
import { useTheme } from "@/stores/theme";
import { type Heat, heatColor } from "./heatmap";

export const HEAT_ROW = 28;

/** One pixel per cell, stretched; hover tells the value, a click asks what happened there. */
export function HeatCanvas({ heat, metric, run }: { heat: Heat; metric: string; run: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme((state) => state.theme);
  const [tip, setTip] = useState("");
  useEffect(() => {
    const ctx = canvas.current?.getContext("2d");
    if (!canvas.current || !ctx) return;
    canvas.current.width = heat.steps.length;
    canvas.current.height = heat.ranks.length;
    heat.ratio.forEach((row, y) => {
      row.forEach((ratio, x) => {
        ctx.fillStyle = heatColor(ratio, theme === "dark");
        ctx.fillRect(x, y, 1, 1);
      });
    });
  }, [heat, theme]);
  const cellAt = (event: PointerEvent<HTMLCanvasElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const column = Math.min(
      heat.steps.length - 1,
      Math.floor(((event.clientX - box.left) / box.width) * heat.steps.length),
    );
    const row = Math.min(
      heat.ranks.length - 1,
      Math.floor(((event.clientY - box.top) / box.height) * heat.ranks.length),
    );
    return { row, column };
  };
  const hover = (event: PointerEvent<HTMLCanvasElement>) => {
    const { row, column } = cellAt(event);
    const ratio = heat.ratio[row]?.[column] ?? null;
    setTip(
      `step ${heat.steps[column] ?? ""} · rank ${heat.ranks[row] ?? ""} · ${formatValue(heat.value[row]?.[column] ?? null)}${
        ratio === null ? "" : ` (${ratio.toFixed(2)}× median)`
      }`,
    );
  };
  return (
    <div className="min-w-0 flex-1">
      <canvas
        ref={canvas}
        role="img"
        aria-label={`Heatmap of ${metric}: ${heat.ranks.length} ranks, ${heat.steps.length} columns of steps up to ${heat.steps.at(-1) ?? 0}`}
        className="block w-full cursor-crosshair [image-rendering:pixelated]"
        style={{ height: heat.ranks.length * HEAT_ROW }}
        onPointerMove={hover}
        onPointerLeave={() => setTip("")}
        onPointerUp={(event) => {
          const { row, column } = cellAt(event);
          const step = heat.steps[column] ?? null;
          openIncident({
            run_id: run,
            step,
            time: null,
            metric,
            title: `${metric} at rank ${heat.ranks[row] ?? ""}`,
            worker_id: null,
          });
        }}
      />
      <div className="mt-1 flex justify-between text-2xs text-faint">
        <span>step {heat.steps[0]?.toLocaleString("en-US")}</span>
        <span className="text-fg">{tip}</span>
        <span>step {heat.steps.at(-1)?.toLocaleString("en-US")}</span>
      </div>
    </div>
  );
}
