import type { TimeShares } from "@/api/wire";
import { segmentsOf } from "@/lib/course";
import { cx } from "@/lib/cx";
import { formatDuration, formatPercent } from "@/lib/format";

interface Props {
  shares: TimeShares;
  /** With names and times below; without it the bar alone. */
  legend?: boolean;
}

/** One bar of wall time. Every part is also in words: in the legend, or in the bar's own name. */
export function GoodputBar({ shares, legend = false }: Props) {
  const segments = segmentsOf(shares);
  const words = segments.map((one) => `${one.label} ${formatPercent(one.percent, 1)}`).join(", ");
  return (
    <div className="min-w-0">
      <div role="img" aria-label={words} className={cx("flex overflow-hidden rounded", legend ? "h-4" : "h-2")}>
        {segments.map((one) => (
          <span
            key={one.key}
            title={`${one.label}: ${formatDuration(one.seconds)}, ${formatPercent(one.percent, 1)} (${one.hint})`}
            className={cx("h-full border-r border-surface last:border-0", one.fill)}
            style={{ width: `${one.percent}%` }}
          />
        ))}
      </div>
      {legend && (
        <ul className="mt-2.5 flex flex-wrap gap-x-6 gap-y-1.5 text-xs">
          {segments.map((one) => (
            <li key={one.key} title={one.hint} className="flex items-baseline gap-1.5 whitespace-nowrap">
              <span aria-hidden="true" className={cx("size-2 shrink-0 rounded-[2px]", one.fill)} />
              <span className="text-muted">{one.label}</span>
              <span className="font-mono">
                {formatDuration(one.seconds)} <span className="text-faint">{formatPercent(one.percent, 1)}</span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
