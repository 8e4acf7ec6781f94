import { Copy, GripVertical, Pencil, Trash2 } from "lucide-react";
import { type CSSProperties, type KeyboardEvent, memo, useRef } from "react";
import type { MetricChart } from "@/components/chart/metric-chart";
import { ExportMenu } from "@/components/metric/export-menu";
import { Button } from "@/components/ui/button";
import { cx } from "@/lib/cx";
import { edit, useBoards } from "./boards";
import { addPanel, freeId, nudgePanel, type Panel, placeOf, removePanel, resizePanel } from "./layout";
import { GAP_PX, ROW_PX, startDrag, startResize } from "./moving";
import { PanelBody } from "./panel-body";
import { titleOf } from "./panel-title";

const HEADER_PX = 36;

interface Props {
  panel: Panel;
  /** Where a dragged panel would fall: at this one's left or right edge. */
  drop: "before" | "after" | null;
}

function onKey(event: KeyboardEvent, panel: Panel): void {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!step) return;
  event.preventDefault();
  const [dx = 0, dy = 0] = step;
  if (event.shiftKey) edit((layout) => resizePanel(layout, panel.id, panel.w + dx, panel.h + dy));
  else edit((layout) => nudgePanel(layout, panel.id, dx + dy > 0 ? 1 : -1));
}

function duplicate(panel: Panel): void {
  edit((layout) => addPanel(layout, { ...panel, id: freeId(layout) }, placeOf(layout, panel.id)?.section));
}

/** A panel with its name and handles. The grip takes a pointer, arrow keys to move and Shift with arrow keys to size. */
export const PanelFrame = memo(function PanelFrame({ panel, drop }: Props) {
  const chart = useRef<MetricChart | null>(null);
  const box = useRef<HTMLElement>(null);
  const dragged = useBoards((state) => state.dragging === panel.id);
  const title = titleOf(panel);
  const height = panel.h * ROW_PX + (panel.h - 1) * GAP_PX - HEADER_PX;
  return (
    <article
      ref={box}
      data-panel={panel.id}
      data-kind={panel.kind}
      aria-label={title}
      style={{ "--w": panel.w, "--h": panel.h } as CSSProperties}
      className={cx(
        "group relative col-span-(--w) row-span-(--h) min-w-0 overflow-clip rounded-lg border border-line bg-surface max-md:col-span-1",
        dragged && "opacity-50 outline-2 outline-accent",
        drop === "before" && "shadow-[-4px_0_0_var(--accent)]",
        drop === "after" && "shadow-[4px_0_0_var(--accent)]",
      )}
    >
      <header className="flex h-9 items-center gap-1 pr-1 pl-1">
        <button
          type="button"
          aria-label={`Move ${title}: arrow keys, with Shift its size`}
          title="Drag to move. Arrow keys move, Shift and arrow keys resize."
          className="flex h-7 w-5 shrink-0 cursor-grab touch-none items-center justify-center rounded text-faint hover:text-fg"
          onPointerDown={(event) => startDrag(event, panel.id)}
          onKeyDown={(event) => onKey(event, panel)}
        >
          <GripVertical size={13} aria-hidden="true" />
        </button>
        <h3 className="min-w-0 truncate text-xs font-medium" title={title}>
          {title}
        </h3>
        <span className="absolute right-1 flex bg-surface opacity-0 transition-opacity group-focus-within:opacity-100 group-hover:opacity-100 max-md:opacity-100">
          {panel.kind === "line" && <ExportMenu metric={title} chart={chart} />}
          <Button
            look="quiet"
            icon
            aria-label={`Edit ${title}`}
            onClick={() => useBoards.setState({ editing: panel.id })}
          >
            <Pencil size={13} />
          </Button>
          <Button look="quiet" icon aria-label={`Duplicate ${title}`} onClick={() => duplicate(panel)}>
            <Copy size={13} />
          </Button>
          <Button
            look="quiet"
            icon
            aria-label={`Remove ${title}`}
            onClick={() => edit((layout) => removePanel(layout, panel.id))}
          >
            <Trash2 size={13} />
          </Button>
        </span>
      </header>
      <div className="min-h-0 px-1 pb-1" style={{ height }}>
        <PanelBody panel={panel} title={title} height={height - 6} chart={chart} />
      </div>
      <span
        data-testid="resize"
        aria-hidden="true"
        title="Drag to resize"
        className="absolute right-0 bottom-0 size-4 cursor-nwse-resize touch-none border-r-2 border-b-2 border-transparent group-hover:border-line-strong max-md:hidden"
        onPointerDown={(event) => {
          const grid = box.current?.parentElement;
          if (grid) startResize(event, panel, grid);
        }}
      />
    </article>
  );
});
