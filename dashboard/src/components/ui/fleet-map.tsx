import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import type { FleetGroup } from "@/api/wire";
import { requests } from "@/data/source";
import { useSize } from "@/hooks/size";
import { cellAt, FLEET_STATES, type FleetCell, type FleetState, fleetText, layOut } from "@/lib/fleet";
import { pathOf } from "@/lib/routes";
import { toast } from "@/stores/overlay";
import { useTheme } from "@/stores/theme";
import { addressOf } from "@/stores/view";
import { describe } from "./confirm";
import { toneOf } from "./status";

const HEIGHT = 380;
const FAINT = 0.18;

interface Props {
  groups: readonly FleetGroup[];
  /** Others are drawn faintly. */
  only?: FleetState | "";
}

/** One cell per worker on a canvas, hosts side by side: ten thousand are drawn in a few milliseconds, and only when
 * they changed. Arrow keys walk over them; Enter or a click opens one. */
export function FleetMap({ groups, only = "" }: Props) {
  const [box, { width }] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme((state) => state.theme);
  const [at, setAt] = useState<number | null>(null);
  const [, navigate] = useLocation();
  // Where the cells are changes only when hosts come or go, what they show twice a second.
  const shape = groups.map((group) => `${group.host_sizes.join()} ${group.task_id}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the shape stands for the groups.
  const layout = useMemo(() => layOut(groups, Math.max(1, width), HEIGHT), [shape, width]);
  const { cell, columns, rows, places } = layout;
  const states = useMemo(() => groups.map((group) => group.states).join(""), [groups]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours are another theme's when it changes.
  useEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext("2d");
    if (!element || !ctx || width === 0) return;
    const dots = window.devicePixelRatio || 1;
    element.width = Math.round(columns * cell * dots);
    element.height = Math.round(rows * cell * dots);
    ctx.scale(dots, dots);
    const look = getComputedStyle(element);
    const side = cell > 4 ? cell - 1 : cell - 0.5;
    for (const [letter, state] of Object.entries(FLEET_STATES)) {
      ctx.fillStyle = look.getPropertyValue(`--${toneOf(state)}`);
      ctx.globalAlpha = only === "" || only === state ? 1 : FAINT;
      ctx.beginPath();
      for (let i = states.indexOf(letter); i >= 0; i = states.indexOf(letter, i + 1)) {
        const place = places[i] ?? 0;
        ctx.rect((place % columns) * cell, Math.floor(place / columns) * cell, side, side);
      }
      ctx.fill();
    }
    if (at !== null && at < places.length) {
      const place = places[at] ?? 0;
      ctx.globalAlpha = 1;
      ctx.lineWidth = 2;
      ctx.strokeStyle = look.getPropertyValue("--fg");
      ctx.strokeRect((place % columns) * cell - 1, Math.floor(place / columns) * cell - 1, cell + 1, cell + 1);
    }
  }, [states, layout, width, theme, only, at]);

  const byPlace = useMemo(() => new Map(Array.from(places, (place, i) => [place, i])), [places]);
  const under = (event: PointerEvent<HTMLCanvasElement>) => {
    const bounds = event.currentTarget.getBoundingClientRect();
    const column = Math.floor((event.clientX - bounds.left) / cell);
    const row = Math.floor((event.clientY - bounds.top) / cell);
    return byPlace.get(row * columns + column) ?? null;
  };
  const open = async (index: number | null) => {
    const found = index === null ? null : cellAt(groups, index);
    if (!found) return;
    try {
      const asked = { task_id: found.group.task_id ?? "", rank: found.rank, limit: 1 };
      const { workers } = await requests().fleetWorkers(asked);
      if (workers[0]) navigate(addressOf(pathOf("cluster", workers[0].id)));
      else toast(`Rank ${found.rank} is not in the cluster any more.`);
    } catch (cause) {
      toast(describe(cause), "bad");
    }
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (event.key === "Enter") void open(at);
    else if (event.key === "Escape") setAt(null);
    else if (step === undefined) return;
    else setAt((old) => (old === null ? 0 : Math.max(0, Math.min(places.length - 1, old + step))));
    event.preventDefault();
  };
  const chosen = at === null ? null : cellAt(groups, at);
  return (
    <div ref={box} className="min-w-0 overflow-hidden p-0.5">
      <div
        role="application"
        aria-label={`Map of the fleet: ${fleetText(groups)}. Arrow keys move, Enter opens a worker.`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys walk over the picture
        tabIndex={0}
        onKeyDown={onKey}
        className="w-fit focus-visible:outline-2 focus-visible:outline-offset-2 focus-visible:outline-accent"
      >
        <canvas
          ref={canvas}
          data-fleet={states.length}
          className="block cursor-pointer"
          style={{ width: columns * cell, height: rows * cell }}
          onPointerMove={(event) => setAt(under(event))}
          onPointerLeave={() => setAt(null)}
          onPointerUp={(event) => void open(under(event))}
        />
      </div>
      <p role="status" className="mt-2 min-h-4 text-2xs text-muted">
        {chosen ? says(chosen) : fleetText(groups)}
      </p>
    </div>
  );
}

function says({ group, rank, state }: FleetCell): string {
  const slow = group.slowest.find((one) => one.rank === rank);
  return `rank ${rank} of ${group.task_id ?? "no task"}: ${state}${slow ? `, ${slow.ratio.toFixed(2)}× the median step` : ""}`;
}
