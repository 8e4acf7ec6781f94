import type { AttemptRow } from "@/api/wire";
import { sizesOf } from "@/lib/course";
import { formatClock } from "@/lib/format";

/** How many ranks an elastic task had over its time, and why that changed. */
export function SizeStrip({ attempts, most, now }: { attempts: readonly AttemptRow[]; most: number; now: number }) {
  const blocks = sizesOf(attempts, now);
  const last = blocks.at(-1);
  if (!last) return null;
  const top = Math.max(most, ...blocks.map((one) => one.size));
  const changes = blocks.filter((one) => one.before !== null);
  return (
    <section aria-label="Size" className="flex flex-col gap-1 text-xs">
      <p>
        <span className="font-medium">Size</span>{" "}
        <span className="text-muted">
          {last.size} of {top} ranks
        </span>
      </p>
      <div aria-hidden="true" className="relative h-9 overflow-hidden rounded bg-sunken">
        {blocks.map((one) => (
          <span
            key={one.attempt.attempt}
            title={`${one.size} ranks from ${formatClock(one.attempt.started_at_ms)}`}
            className="absolute bottom-0 min-w-[2px] overflow-hidden border-t-2 border-r border-t-accent border-r-surface bg-accent-soft pl-1 font-mono text-[10px] leading-3"
            style={{
              left: `${one.start}%`,
              width: `${one.end - one.start}%`,
              height: `${Math.max(8, (one.size / top) * 100)}%`,
            }}
          >
            {one.end - one.start > 3 && one.size / top > 0.45 ? one.size : ""}
          </span>
        ))}
      </div>
      {changes.length > 0 && (
        <ol aria-label="Changes of size" className="flex max-h-40 flex-col gap-1 overflow-y-auto">
          {changes.map((one) => (
            <li key={one.attempt.attempt} className="break-words text-muted">
              {formatClock(one.attempt.started_at_ms)}{" "}
              <span className="font-medium text-fg">
                {one.before} → {one.size}
              </span>
              {one.why && `: ${one.why}`}
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
