import type { PreviewCell } from "@/api/wire";
import { formatValue, UNKNOWN } from "@/lib/format";

/** Rows come as lists or as objects by column name. */
export function toCells(row: PreviewCell[] | Record<string, PreviewCell>, names: readonly string[]): PreviewCell[] {
  return Array.isArray(row) ? row : names.map((name) => row[name] ?? null);
}

const IMAGE = /^data:image\//;
const LONG = 60;

/** Pictures as pictures, numbers in a row as a line, long text wrapped, the rest as it is. */
export function Cell({ cell }: { cell: PreviewCell }) {
  if (cell === null || cell === undefined) return <span className="text-faint">{UNKNOWN}</span>;
  if (Array.isArray(cell)) return <SeriesCell values={cell} />;
  if (typeof cell === "object") {
    if (cell.kind === "image") return <ImageCell src={cell.src} alt={cell.alt ?? "sample"} />;
    if (cell.kind === "series") return <SeriesCell values={cell.values} />;
    return <TextCell text={cell.text} />;
  }
  if (typeof cell === "number")
    return <span className="font-mono">{Number.isInteger(cell) ? cell : formatValue(cell)}</span>;
  if (typeof cell === "boolean") return <span className="font-mono">{String(cell)}</span>;
  return IMAGE.test(cell) ? <ImageCell src={cell} alt="sample" /> : <TextCell text={cell} />;
}

function ImageCell({ src, alt }: { src: string; alt: string }) {
  return <img src={src} alt={alt} loading="lazy" className="size-12 rounded border border-line object-cover" />;
}

function TextCell({ text }: { text: string }) {
  return <span className={text.length > LONG ? "block min-w-72 leading-5" : "whitespace-nowrap"}>{text}</span>;
}

function SeriesCell({ values }: { values: readonly number[] }) {
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const points = values
    .map((value, i) => `${(i / Math.max(1, values.length - 1)) * 160},${30 - ((value - low) / span) * 26}`)
    .join(" ");
  return (
    <svg
      viewBox="0 0 160 32"
      className="h-8 w-40"
      role="img"
      aria-label={`${values.length} values from ${formatValue(low)} to ${formatValue(low + span)}`}
    >
      <polyline points={points} fill="none" stroke="var(--accent)" strokeWidth="1.4" />
    </svg>
  );
}
