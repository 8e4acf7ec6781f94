import { cx } from "@/lib/cx";
import { formatPercent } from "@/lib/format";

/** A percent as a short bar with its number. */
export function Meter({ value, label, className }: { value: number; label: string; className?: string }) {
  const width = Math.min(100, Math.max(0, value));
  return (
    <span className={cx("inline-flex items-center gap-2", className)} title={label}>
      <span aria-hidden="true" className="h-1.5 w-16 overflow-hidden rounded-full bg-hover">
        <span className="block h-full rounded-full bg-accent" style={{ width: `${width}%` }} />
      </span>
      <span className="w-9 text-right font-mono">{formatPercent(value)}</span>
    </span>
  );
}
