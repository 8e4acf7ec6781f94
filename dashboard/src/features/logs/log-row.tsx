import type { LogEntry } from "@/api/wire";
import { LEVEL_COLORS } from "@/components/ui/log-lines";
import { styleAt } from "@/lib/colors";
import { cx } from "@/lib/cx";
import { formatClock } from "@/lib/format";
import { messageOf, shortId, timeOf } from "@/lib/logs";
import { useTheme } from "@/stores/theme";

interface Props {
  line: LogEntry;
  selected: boolean;
  onSelect(): void;
}

const TINTS: Record<string, string> = { error: "bg-bad-soft", warn: "bg-warn-soft" };

export function LogRow({ line, selected, onSelect }: Props) {
  const theme = useTheme((state) => state.theme);
  const gutter = line.rank === null || line.rank === undefined ? "transparent" : styleAt(line.rank)[theme];
  return (
    <button
      type="button"
      data-log={line.id}
      onClick={onSelect}
      className={cx(
        "flex h-5 w-full items-center gap-2.5 pr-3 text-left font-mono text-2xs",
        selected ? "bg-accent-soft outline outline-accent" : (TINTS[line.level] ?? "hover:bg-hover"),
      )}
    >
      <span aria-hidden="true" className="h-full w-[3px] shrink-0" style={{ background: gutter }} />
      <span className="shrink-0 text-faint">
        {formatClock(timeOf(line))}
        <span className="max-md:hidden">{formatClock(timeOf(line), true).slice(8)}</span>
      </span>
      <span className={cx("w-10 shrink-0 font-medium uppercase", LEVEL_COLORS[line.level])}>{line.level}</span>
      <span className="w-24 shrink-0 truncate text-muted max-md:hidden">{shortId(line.worker_id ?? line.source)}</span>
      <span className={cx("truncate whitespace-pre", line.level === "debug" && "text-muted")}>{messageOf(line)}</span>
    </button>
  );
}
