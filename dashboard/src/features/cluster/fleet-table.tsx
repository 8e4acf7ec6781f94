import { useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import type { Worker } from "@/api/wire";
import { describe } from "@/components/ui/confirm";
import { Empty } from "@/components/ui/empty";
import type { Column } from "@/components/ui/table";
import { requests, sourceKind } from "@/data/source";
import { useNow } from "@/hooks/now";
import { cx } from "@/lib/cx";
import { formatCount, UNKNOWN } from "@/lib/format";
import { workerColumns } from "./worker-columns";

const PAGE = 100;
const ROW = 36;
const EVERY_MS = 2000;
const FROM = { sm: "max-sm:hidden", md: "max-md:hidden", lg: "max-lg:hidden", xl: "max-xl:hidden" };
/** Ten thousand rows of which about thirty exist; the pages under them are asked for, and again while they are shown. */
export function FleetTable({ status, text }: { status: string; text: string }) {
  const now = useNow(1000);
  const box = useRef<HTMLDivElement>(null);
  const total = useRef(1);
  const rows = useVirtualizer({
    count: total.current,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 8,
  });
  const items = rows.getVirtualItems();
  const pages = [...new Set([0, ...items.map((item) => Math.floor(item.index / PAGE))])];
  const answers = useQueries({
    queries: pages.map((page) => ({
      queryKey: [sourceKind(), "fleet", status, text, page],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        requests().fleetWorkers({ status, q: text, offset: page * PAGE, limit: PAGE }, signal),
      refetchInterval: EVERY_MS,
    })),
  });
  const found = new Map<number, Worker>();
  for (const { data } of answers) {
    for (const [i, worker] of data?.workers.entries() ?? []) found.set((data?.offset ?? 0) + i, worker);
  }
  const known = answers.find((one) => one.data)?.data?.total;
  if (known !== undefined) total.current = known;
  const failed = answers.find((one) => one.error)?.error;
  const columns = workerColumns(now);
  if (known === 0) return <Empty title="No worker matches">Loosen the filters.</Empty>;
  if (known === undefined && failed) {
    return (
      <Empty tone="bad" title="The workers could not be read">
        {describe(failed)}
      </Empty>
    );
  }
  const before = items[0]?.start ?? 0;
  const after = rows.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    <>
      <p className="px-3 py-1.5 text-2xs text-muted">
        {known === undefined ? "Loading" : `${formatCount(known)} workers`}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <section ref={box} aria-label="Workers" tabIndex={0} className="relative h-96 overflow-auto">
        <table aria-rowcount={known ?? -1} className="w-full border-collapse text-xs">
          <thead className="sticky top-0 z-10 bg-surface">
            <tr className="text-left text-2xs text-faint">
              {columns.map((column) => (
                <th
                  key={column.key}
                  scope="col"
                  className={cx("h-8 px-3 font-medium whitespace-nowrap", shown(column))}
                >
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr style={{ height: before }} />
            {items.map((item) => {
              const worker = found.get(item.index);
              return (
                <tr
                  key={item.key}
                  aria-rowindex={item.index + 1}
                  className="border-b border-line hover:bg-hover/60"
                  style={{ height: ROW }}
                >
                  {columns.map((column) => (
                    <td key={column.key} className={cx("px-3 py-1 whitespace-nowrap", shown(column))}>
                      {worker ? column.cell(worker) : UNKNOWN}
                    </td>
                  ))}
                </tr>
              );
            })}
            <tr style={{ height: after }} />
          </tbody>
        </table>
      </section>
    </>
  );
}

function shown(column: Column<Worker>): string {
  return cx(column.right && "text-right", column.from && FROM[column.from]);
}
