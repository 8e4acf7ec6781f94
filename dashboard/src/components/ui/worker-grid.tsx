import type { Worker } from "@/api/wire";
import { useNow } from "@/hooks/now";
import { cx } from "@/lib/cx";
import { formatAge, formatPercent } from "@/lib/format";
import { isLate, loadOf } from "@/lib/workers";
import { PageLink } from "./page-link";
import { toneOf } from "./status";

const FILLS = { ok: "bg-ok", warn: "bg-warn", bad: "bg-bad", accent: "bg-accent", idle: "bg-idle" };

/** Longer ids would push the state out of the cell; they are in its title. */
const SHORT_ID = 10;

/** One cell per worker: state by colour and word, height of the fill by GPU (or CPU) use. */
export function WorkerGrid({ workers }: { workers: readonly Worker[] }) {
  const now = useNow(1000);
  const dense = workers.length > 64;
  return (
    <ul
      className={cx(
        "grid gap-1.5",
        dense ? "grid-cols-[repeat(auto-fill,minmax(28px,1fr))]" : "grid-cols-[repeat(auto-fill,minmax(132px,1fr))]",
      )}
    >
      {workers.map((worker) => {
        const use = loadOf(worker);
        const late = isLate(worker, now);
        const tone = toneOf(worker.status);
        const says = `${worker.id}, ${worker.rank === null ? "no rank" : `rank ${worker.rank}`}, ${worker.status}${
          use ? `, ${use.kind} ${formatPercent(use.percent)}` : ""
        }, heartbeat ${formatAge(worker.last_heartbeat_ms, now)}`;
        return (
          <li key={worker.id}>
            <PageLink
              page="cluster"
              id={worker.id}
              title={says}
              aria-label={dense ? says : undefined}
              data-status={worker.status}
              className={cx(
                "relative block overflow-hidden rounded-md border bg-sunken hover:border-fg",
                dense ? "h-7" : "h-14 px-2 py-1.5",
                tone === "bad" ? "border-bad" : late ? "border-warn" : "border-line-strong",
                tone === "bad" && "hatch",
              )}
            >
              <span
                aria-hidden="true"
                className={cx("absolute inset-x-0 bottom-0 opacity-20", FILLS[tone])}
                style={{ height: `${use?.percent ?? 0}%` }}
              />
              <span aria-hidden="true" className={cx("absolute inset-y-0 left-0 w-[3px]", FILLS[tone])} />
              {!dense && (
                <span className="relative flex h-full flex-col justify-between pl-1 text-2xs leading-4">
                  <span className="flex justify-between gap-1">
                    <span className="truncate font-medium">
                      {worker.rank === null ? worker.id : `rank ${worker.rank}`}
                    </span>
                    <span className="font-mono">{use ? formatPercent(use.percent) : "–"}</span>
                  </span>
                  <span className="truncate text-muted">
                    {worker.id.length <= SHORT_ID && `${worker.id} · `}
                    {late ? `silent ${formatAge(worker.last_heartbeat_ms, now)}` : worker.status}
                  </span>
                </span>
              )}
            </PageLink>
          </li>
        );
      })}
    </ul>
  );
}
