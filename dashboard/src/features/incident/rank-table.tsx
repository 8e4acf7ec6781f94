import type { Worker } from "@/api/wire";
import { PageLink } from "@/components/ui/page-link";
import { cx } from "@/lib/cx";
import { formatUnit } from "@/lib/format";
import type { MetricEvidence } from "./evidence";

const OFF = 1.5;

/** Ranks as rows, metrics as columns; what is 1.5× off the median stands out. */
export function RankTable({ evidence, workers }: { evidence: readonly MetricEvidence[]; workers: readonly Worker[] }) {
  const ranks = [...new Set(evidence.flatMap((one) => one.ranks.map((value) => value.rank)))].sort((a, b) => a - b);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section aria-label="Values per rank" tabIndex={0} className="overflow-x-auto">
      <table className="w-full text-xs">
        <thead>
          <tr className="text-left text-2xs text-faint">
            <th scope="col" className="h-7 pr-3 font-medium">
              Rank
            </th>
            {evidence.map((one) => (
              <th
                key={one.metric}
                scope="col"
                className="max-w-28 truncate px-2 text-right font-medium"
                title={one.metric}
              >
                {one.metric.split(/[/.]/).slice(-2).join(".")}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {ranks.map((rank) => {
            const worker = workers.find((one) => one.rank === rank);
            return (
              <tr key={rank} className="border-t border-line">
                <th scope="row" className="h-7 pr-3 text-left font-normal whitespace-nowrap">
                  {worker ? (
                    <PageLink page="cluster" id={worker.id} className="text-accent hover:underline">
                      {rank}
                    </PageLink>
                  ) : (
                    rank
                  )}
                </th>
                {evidence.map((one) => {
                  const found = one.ranks.find((value) => value.rank === rank);
                  const ratio = found?.value && one.median ? found.value / one.median : 1;
                  const odd = found?.value === null || ratio > OFF || ratio < 1 / OFF;
                  const text = found
                    ? found.value === null
                      ? { text: "NaN", unit: "" }
                      : formatUnit(found.value, one.unit)
                    : null;
                  return (
                    <td
                      key={one.metric}
                      className={cx(
                        "px-2 text-right font-mono whitespace-nowrap",
                        odd && found && "font-semibold text-bad",
                      )}
                    >
                      {text ? `${text.text} ${text.unit}`.trim() : ""}
                    </td>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
