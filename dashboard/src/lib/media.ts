/** What the texts of media say, read with care: they were made by somebody's script. */

export interface MediaItem {
  file: string | null;
  size: number | null;
  width: number | null;
  height: number | null;
  caption: string;
  name: string;
  /** Of a table: how many rows it had, and how many were kept. */
  rows: number | null;
  kept: number | null;
}

export interface Histogram {
  counts: number[];
  /** One more than counts. */
  bins: number[];
  /** How many values were NaN or infinite. */
  bad: number;
}

export type TableCell = null | string | number | boolean | { item: MediaItem; kind: string; missing: string };

export interface MediaTable {
  columns: string[];
  data: TableCell[][];
  rows: number;
}

const FILE = /^[0-9a-f]{64}\.[a-z0-9]{1,8}$/;
/** Kinds in the order in which people look at them. */
const KINDS = ["image", "histogram", "table", "markdown", "text", "html", "file", "json"];

export function kindOrder(kind: string): number {
  const at = KINDS.indexOf(kind);
  return at === -1 ? KINDS.length : at;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function itemOf(value: Record<string, unknown>): MediaItem {
  const file = value["file"];
  return {
    file: typeof file === "string" && FILE.test(file) ? file : null,
    size: numberOf(value["size"]),
    width: numberOf(value["width"]),
    height: numberOf(value["height"]),
    caption: typeof value["caption"] === "string" ? value["caption"] : "",
    name: typeof value["name"] === "string" ? value["name"] : "",
    rows: numberOf(value["rows"]),
    kept: numberOf(value["kept"]),
  };
}

/** The files that a text names; none when it is no such text. */
export function itemsOf(text: string): MediaItem[] {
  const value = parsed(text);
  if (!isRecord(value) || !Array.isArray(value["items"])) return [];
  return value["items"].filter(isRecord).map(itemOf);
}

/** Null when the text is no histogram, or one without a bin that has a width. */
export function histogramOf(text: string): Histogram | null {
  const value = parsed(text);
  if (!isRecord(value) || !Array.isArray(value["counts"]) || !Array.isArray(value["bins"])) return null;
  const counts = value["counts"].map((one) => Math.max(0, numberOf(one) ?? 0));
  const bins = value["bins"].map(numberOf);
  if (counts.length === 0 || bins.length !== counts.length + 1) return null;
  for (let i = 1; i < bins.length; i++)
    if (bins[i] === null || (bins[i] ?? 0) <= (bins[i - 1] ?? Infinity)) return null;
  return { counts, bins: bins as number[], bad: numberOf(value["bad"]) ?? 0 };
}

/** Null when the file is no table. */
export function tableOf(value: unknown): MediaTable | null {
  if (!isRecord(value) || !Array.isArray(value["columns"]) || !Array.isArray(value["data"])) return null;
  const columns = value["columns"].map(String);
  const data = value["data"].filter(Array.isArray).map((row) => columns.map((_, i) => cellOf(row[i])));
  return { columns, data, rows: numberOf(value["rows"]) ?? data.length };
}

function cellOf(value: unknown): TableCell {
  if (value === null || value === undefined) return null;
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  if (isRecord(value) && typeof value["kind"] === "string" && ("file" in value || "missing" in value))
    return { item: itemOf(value), kind: value["kind"], missing: String(value["missing"] ?? "") };
  return JSON.stringify(value);
}

/** Numbers by size, then texts by letters, then what has no order; nothing last, whichever way round. */
export function compareCells(a: TableCell, b: TableCell, down: boolean): number {
  const [ra, rb] = [rankOf(a), rankOf(b)];
  if (ra !== rb) return ra - rb;
  const order =
    typeof a === "number" && typeof b === "number"
      ? a - b
      : typeof a === "string" && typeof b === "string"
        ? a.localeCompare(b, "en", { numeric: true })
        : Number(a === true) - Number(b === true);
  return down ? -order : order;
}

function rankOf(cell: TableCell): number {
  if (typeof cell === "number") return 0;
  if (typeof cell === "boolean") return 1;
  if (typeof cell === "string") return 2;
  return cell === null ? 4 : 3;
}

export interface Strip {
  low: number;
  high: number;
  /** By column, then by row from low to high: the share of the column's values, relative to the largest of all. */
  shares: number[][];
}

/** Histograms with bins of their own, counted again in rows that all of them share. */
export function stripOf(histograms: readonly (Histogram | null)[], rows: number): Strip | null {
  const there = histograms.filter((one) => one !== null).filter((one) => one.counts.some((count) => count > 0));
  if (there.length === 0) return null;
  const low = Math.min(...there.map((one) => one.bins[0] ?? 0));
  const high = Math.max(...there.map((one) => one.bins.at(-1) ?? 0));
  const shares = histograms.map((one) => (one === null ? [] : rebinned(one, low, high, rows)));
  const most = shares.reduce((top, column) => Math.max(top, ...column, 0), 0);
  return { low, high, shares: shares.map((column) => column.map((share) => (most > 0 ? share / most : 0))) };
}

function rebinned({ counts, bins }: Histogram, low: number, high: number, rows: number): number[] {
  const out = new Array<number>(rows).fill(0);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const height = (high - low) / rows;
  if (total === 0 || !(height > 0)) return out;
  counts.forEach((count, i) => {
    if (count === 0) return;
    const from = ((bins[i] ?? low) - low) / height;
    const to = ((bins[i + 1] ?? low) - low) / height;
    const last = Math.min(rows - 1, Math.max(0, Math.ceil(to) - 1));
    for (let row = Math.min(rows - 1, Math.max(0, Math.floor(from))); row <= last; row++) {
      const part = Math.max(0, Math.min(row + 1, to) - Math.max(row, from)) / (to - from);
      out[row] = (out[row] ?? 0) + (part * count) / total;
    }
  });
  return out;
}

/** The place of the last step that is not after this one; the first when all are. -1 of none. */
export function placeOf(steps: readonly number[], step: number): number {
  let [from, to] = [0, steps.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((steps[middle] ?? 0) <= step) from = middle + 1;
    else to = middle;
  }
  return steps.length === 0 ? -1 : Math.max(0, from - 1);
}

/** Steps of several runs as one list, in order. */
export function unionOf(lists: readonly (readonly number[])[]): number[] {
  if (lists.length === 1) return [...(lists[0] ?? [])];
  return [...new Set(lists.flat())].sort((a, b) => a - b);
}
