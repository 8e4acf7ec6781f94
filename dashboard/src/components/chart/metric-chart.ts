/** The imperative island: owns one uPlot, rebuilds it only when its structure changes, else feeds it by setData. */
import uPlot from "uplot";
import { type Drawable, frameLoop } from "@/data/frame";
import { valueAt } from "@/data/line";
import { useTheme } from "@/stores/theme";
import { formatX } from "./axis";
import type { ChartHooks, ChartInput } from "./input";
import { type LineLook, lineLooks, readInk } from "./look";
import { chartOptions } from "./options";
import { hideTip, showTip, type TipRow } from "./tooltip";

export class MetricChart implements Drawable {
  #plot: uPlot | null = null;
  #structure = "";
  #input: ChartInput | null = null;
  #looks: LineLook[] = [];
  #visible = false;
  #yZoom: [number, number] | null = null;
  #size = { width: 0, height: 0 };

  constructor(
    readonly host: HTMLElement,
    readonly hooks: ChartHooks,
  ) {}

  get input(): ChartInput | null {
    return this.#input;
  }
  get looks(): readonly LineLook[] {
    return this.#looks;
  }
  /** The part of the y axis that somebody drew a box around; null: what fits. */
  get yZoom(): readonly [number, number] | null {
    return this.#yZoom;
  }
  get canvas(): HTMLCanvasElement | null {
    return this.#plot?.ctx.canvas ?? null;
  }

  /** Off-screen charts are destroyed: nothing else frees uPlot's memory. */
  setVisible(visible: boolean): void {
    if (this.#visible === visible) return;
    this.#visible = visible;
    if (visible) frameLoop.urge(this);
    else this.#drop();
  }

  resize(width: number, height: number): void {
    const size = { width: Math.floor(width), height: Math.floor(height) };
    if (size.width === this.#size.width && size.height === this.#size.height) return;
    this.#size = size;
    if (this.#plot && width > 0) this.#plot.setSize(this.#size);
    else this.invalidate();
  }

  invalidate(now = false): void {
    if (!this.#visible) return;
    if (now) frameLoop.urge(this);
    else frameLoop.mark(this);
  }

  draw(): void {
    if (!this.#visible || this.#size.width < 40) return;
    const input = this.hooks.read(this.#size.width);
    this.#input = input;
    // A chart whose points are on their way is built once, with all of them.
    if (input.pending && !this.#plot) {
      this.hooks.onDrawn?.(input);
      return;
    }
    const { theme } = useTheme.getState();
    this.#looks = lineLooks(input.plot.lines, theme, input.view.baseline);
    const { x, xMetric, logX, logY, smoothing, baseline, zoom } = input.view;
    if (zoom === null) this.#yZoom = null;
    const keys = input.plot.lines.map((line) => line.key).join("|");
    const structure = [theme, x, xMetric, logX, logY, smoothing > 0, baseline, keys].join("\n");
    const data = toAligned(input);
    const plot = this.#plot;
    // In a batch uPlot draws at once. By itself it draws after the frame's callback, out of sight of the frame's budget.
    if (plot && structure === this.#structure) plot.batch(() => plot.setData(data));
    else this.#build(structure, data);
    this.hooks.onDrawn?.(input);
  }

  destroy(): void {
    this.#visible = false;
    this.#drop();
  }

  /** Moves the crosshair by keyboard. */
  nudge(by: number): void {
    const u = this.#plot;
    if (!u) return;
    const idx = Math.min(Math.max((u.cursor.idx ?? u.data[0].length) + by, 0), u.data[0].length - 1);
    u.setCursor({ left: u.valToPos(u.data[0][idx] ?? 0, "x"), top: 10 });
    this.#tip(u, true);
  }

  pick(): void {
    const input = this.#input;
    const index = this.#plot?.cursor.idx;
    if (!input || index === null || index === undefined) return;
    const line = input.plot.lines[this.#nearest(index)];
    if (line) this.hooks.onPick?.(line, input.plot.x[index] ?? 0);
  }

  #build(structure: string, data: uPlot.AlignedData): void {
    this.#drop();
    this.#structure = structure;
    const ink = readInk(useTheme.getState().theme);
    const options = chartOptions({
      size: this.#size,
      ink,
      looks: () => this.#looks,
      input: () => this.#input as ChartInput,
      yZoom: () => this.#yZoom,
      onZoom: (zoom, y) => {
        this.#yZoom = y;
        this.hooks.onZoom?.(zoom);
        this.invalidate(true);
      },
      onCursor: (u) => this.#tip(u, false),
      onClick: () => this.pick(),
    });
    this.#plot = new uPlot(options, data, this.host);
    this.#plot.batch(() => {});
  }

  #drop(): void {
    frameLoop.forget(this);
    if (this.#plot) hideTip();
    this.#plot?.destroy();
    this.#plot = null;
  }

  /** The line that lies nearest to the pointer; the first one when the pointer is nowhere. */
  #nearest(index: number): number {
    const u = this.#plot;
    const lines = this.#input?.plot.lines ?? [];
    if (!u) return 0;
    const top = u.cursor.top ?? 0;
    const distance = lines.map((line) => {
      const y = line.y[index];
      return typeof y === "number"
        ? Math.abs(u.valToPos(y, "y") - top)
        : line.bad[index]
          ? u.over.clientHeight - top
          : Infinity;
    });
    return Math.max(0, distance.indexOf(Math.min(...distance)));
  }

  #tip(u: uPlot, byKey: boolean): void {
    const index = u.cursor.idx;
    const input = this.#input;
    const hovered = byKey || u.over.matches(":hover");
    if (!hovered) return;
    if (index === null || index === undefined || !input) {
      hideTip();
      return;
    }
    const near = this.#nearest(index);
    const rows: TipRow[] = [];
    input.plot.lines.forEach((line, i) => {
      const y = valueAt(line, index);
      if (y === undefined) return;
      const smooth = input.view.smoothing > 0 ? (line.smooth[index] ?? null) : null;
      rows.push({ color: this.#looks[i]?.color ?? "", name: input.nameOf(line), value: y, smooth, near: i === near });
    });
    const box = u.over.getBoundingClientRect();
    const at = { x: box.left + (u.cursor.left ?? 0), y: box.top + Math.max(0, u.cursor.top ?? 0) };
    showTip(formatX(input.view, input.plot.x[index] ?? 0), rows, at);
  }
}

function toAligned({ plot, view }: ChartInput): uPlot.AlignedData {
  const rows =
    view.smoothing > 0 ? plot.lines.flatMap((line) => [line.y, line.smooth]) : plot.lines.map((line) => line.y);
  return [plot.x, ...rows] as uPlot.AlignedData;
}
