/** One tooltip element for the whole page; whichever chart the pointer is over fills it. */
import { formatValue } from "@/lib/format";

export interface TipRow {
  color: string;
  name: string;
  value: number | null;
  smooth: number | null;
  near: boolean;
}

const MAX_ROWS = 10;
const GAP = 14;
let box: HTMLDivElement | null = null;

function element(): HTMLDivElement {
  if (box?.isConnected) return box;
  box = document.createElement("div");
  box.className =
    "pointer-events-none fixed z-50 hidden max-w-80 min-w-40 rounded-md border border-line-strong bg-surface px-2 py-1.5 text-xs shadow-(--shadow)";
  box.setAttribute("aria-hidden", "true");
  document.body.append(box);
  return box;
}

export function hideTip(): void {
  box?.classList.add("hidden");
}

export function showTip(title: string, rows: readonly TipRow[], at: { x: number; y: number }): void {
  const tip = element();
  const shown = nearestRows(rows, MAX_ROWS);
  tip.replaceChildren(line("mb-1 text-2xs text-muted", title), ...shown.map(rowOf));
  if (rows.length > shown.length) {
    tip.append(line("mt-0.5 text-2xs text-faint", `the nearest ${shown.length} of ${rows.length}`));
  }
  tip.classList.remove("hidden");
  const { width, height } = tip.getBoundingClientRect();
  const left = at.x + GAP + width > innerWidth ? at.x - GAP - width : at.x + GAP;
  const top = Math.min(Math.max(8, at.y - height / 2), innerHeight - height - 8);
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${top}px`;
}

/** By value, as their lines lie at the cursor; where there are too many, those around the pointer. */
export function nearestRows(rows: readonly TipRow[], most: number): TipRow[] {
  // A NaN lies on the floor of the chart, as its mark does.
  const height = (row: TipRow) => row.value ?? -Infinity;
  const sorted = [...rows].sort((a, b) => (height(a) === height(b) ? 0 : height(b) - height(a)));
  const near = sorted.findIndex((row) => row.near);
  const from = Math.min(Math.max(0, near - Math.floor(most / 2)), Math.max(0, rows.length - most));
  return sorted.slice(from, from + most);
}

function line(className: string, text: string): HTMLElement {
  const node = document.createElement("div");
  node.className = className;
  node.textContent = text;
  return node;
}

function rowOf(row: TipRow): HTMLElement {
  const node = document.createElement("div");
  node.className = `flex items-center gap-1.5 leading-5 ${row.near ? "font-semibold" : ""}`;
  const swatch = document.createElement("span");
  swatch.className = "h-0.5 w-2.5 shrink-0 rounded-full";
  swatch.style.background = row.color;
  const name = line("truncate", row.name);
  const value = line("ml-auto pl-3 font-mono", row.value === null ? "NaN" : formatValue(row.value));
  node.append(swatch, name, value);
  if (row.smooth !== null) node.append(line("font-mono text-faint", `~${formatValue(row.smooth)}`));
  return node;
}
