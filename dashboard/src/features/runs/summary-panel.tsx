import { Panel } from "@/components/ui/panel";
import { Table } from "@/components/ui/table";
import { useResource } from "@/hooks/resource";
import { formatValue } from "@/lib/format";

const ASK_MS = 5000;

/** The run as a whole: last, lowest and highest of each metric, and what its script set. */
export function SummaryPanel({ run }: { run: string }) {
  const { data } = useResource(["summary", run], (requests, signal) => requests.runSummary(run, signal), {
    everyMs: ASK_MS,
  });
  if (data === undefined) return null; // a recording has none, and an older server neither
  const metrics = Object.entries(data.metrics);
  const values = Object.entries(data.values);
  if (metrics.length + values.length === 0) return null;
  return (
    <Panel title="Summary" flush>
      {values.length > 0 && (
        <dl className="grid grid-cols-[repeat(auto-fill,minmax(180px,1fr))] gap-x-4 gap-y-2 border-b border-line p-3 text-xs last:border-0">
          {values.map(([name, value]) => (
            <div key={name} className="min-w-0">
              <dt className="truncate text-2xs text-faint">{name}</dt>
              <dd className="truncate font-mono" title={textOf(value)}>
                {textOf(value)}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {metrics.length > 0 && (
        <Table
          label="Summary of the metrics"
          rows={metrics}
          rowKey={([name]) => name}
          columns={[
            { key: "metric", title: "Metric", cell: ([name]) => <span className="font-mono">{name}</span> },
            ...(["last", "min", "max"] as const).map((aspect) => ({
              key: aspect,
              title: aspect === "last" ? "Last" : aspect === "min" ? "Lowest" : "Highest",
              right: true,
              cell: ([, figures]: (typeof metrics)[number]) => (
                <span className="font-mono">{formatValue(figures[aspect])}</span>
              ),
            })),
          ]}
        />
      )}
    </Panel>
  );
}

function textOf(value: unknown): string {
  if (typeof value === "number") return formatValue(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}
