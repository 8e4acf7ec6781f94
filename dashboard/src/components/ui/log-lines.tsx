import type { LogEntry } from "@/api/wire";
import { cx } from "@/lib/cx";
import { formatClock } from "@/lib/format";
import { messageOf, shortId } from "@/lib/logs";
import { PageLink } from "./page-link";

export const LEVEL_COLORS: Record<string, string> = {
  error: "text-bad",
  warn: "text-warn",
  info: "text-muted",
  debug: "text-faint",
};

/** A short list of log lines; each one links to its place in the log page. */
export function LogLines({ lines, showWorker = true }: { lines: readonly LogEntry[]; showWorker?: boolean }) {
  return (
    <ol className="font-mono text-2xs leading-[18px]">
      {lines.map((line) => (
        <li
          key={line.id}
          className={cx(
            "flex gap-2 px-3",
            line.level === "error" && "bg-bad-soft",
            line.level === "warn" && "bg-warn-soft",
          )}
        >
          <PageLink
            page="logs"
            view={{ at: line.id, level: "", task: "", worker: "", logSearch: "" }}
            className="shrink-0 text-faint hover:underline"
          >
            {formatClock(line.timestamp_ms)}
          </PageLink>
          <span className={cx("w-9 shrink-0 uppercase", LEVEL_COLORS[line.level])}>{line.level}</span>
          {showWorker && (
            <span className="w-24 shrink-0 truncate text-muted">{shortId(line.worker_id ?? line.source)}</span>
          )}
          <span className="min-w-0 break-words whitespace-pre-wrap">{messageOf(line)}</span>
        </li>
      ))}
    </ol>
  );
}
