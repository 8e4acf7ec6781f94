import type { ImageCell, MarkedCell, PreviewCell } from "@/api/wire";
import { formatBytes, formatValue, UNKNOWN } from "@/lib/format";

const LONG = 60;
const SERIES_FROM = 4;
const LISTED = 16;

export function isImage(cell: PreviewCell | undefined): cell is ImageCell {
  return isMarked(cell) && cell.kind === "image";
}

/** A value that says what it is; a nested record does not, unless it has such a field of its own. */
function isMarked(cell: PreviewCell | undefined): cell is MarkedCell {
  return typeof cell === "object" && cell !== null && typeof cell.kind === "string";
}

/** Pictures as pictures, numbers in a row as a line, long text wrapped, the rest as it is. */
export function Cell({ cell }: { cell: PreviewCell | undefined }) {
  if (cell === null || cell === undefined) return <span className="text-faint">{UNKNOWN}</span>;
  if (typeof cell === "number")
    return <span className="font-mono">{Number.isInteger(cell) ? cell : formatValue(cell)}</span>;
  if (typeof cell === "string") return <TextCell text={cell} />;
  if (typeof cell === "boolean") return <span className="font-mono">{String(cell)}</span>;
  if (!isMarked(cell)) return <span className="font-mono">{JSON.stringify(cell)}</span>;
  switch (cell.kind) {
    case "image":
      return <Picture image={cell} />;
    case "text":
      return <TextCell text={cell.text} />;
    case "bytes":
      return (
        <span className="font-mono">
          {cell.hex.slice(0, 16)}… <span className="text-faint">{formatBytes(cell.size)}</span>
        </span>
      );
    case "array":
      return (
        <ValuesCell
          values={cell.values}
          note={`${cell.dtype}[${cell.shape.join("×")}]`}
          total={cell.shape.length === 1 ? (cell.shape[0] ?? 0) : 0}
        />
      );
    case "list":
      return <ValuesCell values={cell.values} note={`${cell.size} items`} total={cell.size} />;
    default:
      // A nested record, as the file has it.
      return <span className="font-mono">{JSON.stringify(cell)}</span>;
  }
}

function Picture({ image }: { image: ImageCell }) {
  if (!image.thumbnail) return <span className="text-xs text-warn">{image.error ?? "no picture"}</span>;
  const alt = image.width ? `${image.width} × ${image.height} pixels` : "sample";
  return (
    <img
      src={image.thumbnail}
      alt={alt}
      title={alt}
      loading="lazy"
      className="size-full rounded border border-line object-cover"
    />
  );
}

function TextCell({ text }: { text: string }) {
  return <span className={text.length > LONG ? "block min-w-72 leading-5" : "whitespace-nowrap"}>{text}</span>;
}

/** `total` is how many values a series has; of a long one the lowest and highest of each stretch are given. */
function ValuesCell({ values, note, total }: { values: readonly unknown[]; note: string; total: number }) {
  const numbers = values.filter((value): value is number => typeof value === "number");
  const isSeries = numbers.length >= SERIES_FROM && (numbers.length === values.length || values.length > LISTED);
  if (!isSeries) {
    return (
      <span className="font-mono whitespace-nowrap">
        {values.map((value) => (typeof value === "number" ? formatValue(value) : JSON.stringify(value))).join(", ")}{" "}
        <span className="text-faint">{note}</span>
      </span>
    );
  }
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  const span = high - low || 1;
  const missing = values.length - numbers.length;
  const points = values
    .map((value, i) =>
      typeof value === "number" ? `${(i / (values.length - 1)) * 160},${30 - ((value - low) / span) * 26}` : null,
    )
    .filter((point) => point !== null)
    .join(" ");
  const says = `${total || values.length} values from ${formatValue(low)} to ${formatValue(high)}`;
  return (
    <span className="flex items-center gap-2" title={says}>
      <svg viewBox="0 0 160 32" className="h-8 w-40 shrink-0" role="img" aria-label={says}>
        <polyline points={points} fill="none" stroke="var(--accent)" strokeWidth="1.2" strokeLinejoin="round" />
      </svg>
      <span className="font-mono text-faint">
        {note}
        {missing > 0 && `, ${missing} not finite`}
      </span>
    </span>
  );
}
