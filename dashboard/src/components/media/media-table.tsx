import { useMemo, useState } from "react";
import { Button } from "@/components/ui/button";
import { type Column, Table } from "@/components/ui/table";
import { formatCount, formatValue, UNKNOWN } from "@/lib/format";
import { compareCells, type MediaTable, type TableCell } from "@/lib/media";
import { fileUrl } from "./file-url";

const PAGE = 50;

/** A table that a run logged: sorted by any column, pictures in its cells, more rows when asked for. */
export function MediaTableView({ run, label, table }: { run: string; label: string; table: MediaTable }) {
  const [sort, setSort] = useState({ key: "", down: false });
  const [shown, setShown] = useState(PAGE);
  const rows = useMemo(() => {
    const numbered = table.data.map((cells, place) => ({ cells, place }));
    const at = Number(sort.key);
    if (sort.key === "") return numbered;
    return numbered.sort((a, b) => compareCells(a.cells[at] ?? null, b.cells[at] ?? null, sort.down));
  }, [table, sort]);
  const columns: Column<(typeof rows)[number]>[] = table.columns.map((title, at) => ({
    key: String(at),
    title: title || UNKNOWN,
    right: table.data.every((row) => typeof row[at] === "number" || row[at] === null),
    cell: ({ cells }) => <CellView run={run} cell={cells[at] ?? null} />,
  }));
  const left = rows.length - shown;
  return (
    <div>
      <div className="max-h-96 overflow-y-auto">
        <Table
          label={label}
          rows={rows.slice(0, shown)}
          columns={columns}
          rowKey={(row) => row.place}
          sort={sort}
          onSort={(key) => setSort((old) => ({ key, down: old.key === key && !old.down }))}
        />
      </div>
      <p className="flex items-center gap-3 px-3 py-2 text-2xs text-muted">
        {left > 0 && <Button onClick={() => setShown(shown + 10 * PAGE)}>Show more rows</Button>}
        {formatCount(Math.min(shown, rows.length))} of {formatCount(rows.length)} rows
        {table.rows > rows.length && `; ${formatCount(table.rows)} were logged, the first ones are kept`}
      </p>
    </div>
  );
}

function CellView({ run, cell }: { run: string; cell: TableCell }) {
  if (cell === null) return <span className="text-faint">{UNKNOWN}</span>;
  if (typeof cell === "number") return <span className="font-mono">{formatValue(cell)}</span>;
  if (typeof cell !== "object") return <span className="block max-w-80 truncate">{String(cell)}</span>;
  const { item, kind, missing } = cell;
  if (!item.file) return <span className="text-faint">{missing || `a ${kind} that was not kept`}</span>;
  if (kind !== "image")
    return (
      <a className="text-accent hover:underline" href={fileUrl(run, item.file)} target="_blank" rel="noreferrer">
        {item.name || kind}
      </a>
    );
  return (
    <img
      src={fileUrl(run, item.file)}
      alt={item.caption || "a picture"}
      title={item.caption}
      loading="lazy"
      className="my-1 h-16 w-16 rounded bg-sunken object-contain [image-rendering:pixelated]"
    />
  );
}
