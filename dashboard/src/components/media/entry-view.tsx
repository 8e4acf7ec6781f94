import type { MediaEntry } from "@/api/wire";
import { Empty } from "@/components/ui/empty";
import { useResource } from "@/hooks/resource";
import { formatBytes } from "@/lib/format";
import { itemsOf, type MediaItem, tableOf } from "@/lib/media";
import { fetchFile, fileUrl } from "./file-url";
import { Markdown } from "./markdown";
import { MediaTableView } from "./media-table";

interface Props {
  run: string;
  metric: string;
  kind: string;
  entry: MediaEntry;
}

/** One entry that is neither a picture nor a histogram. */
export function EntryView({ run, metric, kind, entry }: Props) {
  if (kind === "markdown") return <Markdown text={entry.text} />;
  const items = itemsOf(entry.text);
  if (items.length === 0)
    return <pre className="max-h-80 overflow-auto font-mono text-xs whitespace-pre-wrap">{entry.text}</pre>;
  return (
    <div className="flex flex-col gap-3">
      {items.map((item, i) => (
        <ItemView
          // biome-ignore lint/suspicious/noArrayIndexKey: items have no identity; the whole list is replaced at once
          key={i}
          run={run}
          label={`${metric} at step ${entry.step}`}
          kind={kind}
          item={item}
        />
      ))}
    </div>
  );
}

function ItemView({ run, label, kind, item }: { run: string; label: string; kind: string; item: MediaItem }) {
  if (!item.file) return <p className="text-xs text-muted">This {kind} was not kept.</p>;
  if (kind === "table") return <TableFile run={run} label={label} file={item.file} />;
  // The server sends it with a sandbox of its own, too: opened by itself it has no origin either.
  if (kind === "html")
    return (
      <iframe
        title={label}
        src={fileUrl(run, item.file)}
        sandbox="allow-scripts"
        referrerPolicy="no-referrer"
        loading="lazy"
        className="h-80 w-full rounded-md border border-line bg-white"
      />
    );
  return (
    <p className="text-xs">
      <a className="text-accent hover:underline" href={fileUrl(run, item.file)} target="_blank" rel="noreferrer">
        {item.name || item.caption || kind}
      </a>{" "}
      <span className="text-muted">{formatBytes(item.size)}</span>
    </p>
  );
}

function TableFile({ run, label, file }: { run: string; label: string; file: string }) {
  const { data, error } = useResource(["media-file", run, file], async (_, signal) =>
    tableOf(await (await fetchFile(run, file, signal)).json()),
  );
  if (error)
    return (
      <Empty title="The table cannot be read" tone="bad">
        {error.message}
      </Empty>
    );
  if (data === undefined) return <div className="skeleton h-24" role="status" aria-label="Loading" />;
  if (data === null) return <Empty title="The file is no table" />;
  return <MediaTableView run={run} label={label} table={data} />;
}
