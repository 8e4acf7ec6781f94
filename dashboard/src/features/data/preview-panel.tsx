import { useState } from "react";
import type { Dataset, Preview } from "@/api/wire";
import { describe } from "@/components/ui/confirm";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Select } from "@/components/ui/input";
import { Panel } from "@/components/ui/panel";
import { useResource } from "@/hooks/resource";
import { useCluster } from "@/stores/cluster";
import { useMay, useRights } from "@/stores/rights";
import { Gallery } from "./gallery";
import { Cell, isImage } from "./preview-cell";

const SAMPLES = 8;

export function PreviewPanel({ dataset }: { dataset: Dataset }) {
  const [worker, setWorker] = useState("");
  const workers = useCluster((state) => state.workers);
  const who = useRights((state) => state.who);
  const may = useMay("GET /datasets/{dataset_id}/preview");
  const { data, isPending, error } = useResource(
    ["preview", dataset.id, worker],
    (it, signal) => it.preview(dataset.id, worker || null, SAMPLES, signal),
    { everyMs: 5000, enabled: may },
  );
  if (who !== null && !may) {
    return (
      <Panel title="Preview">
        <Empty title="Samples are for operators">The token of this browser is a {who}'s.</Empty>
      </Panel>
    );
  }
  return (
    <Panel
      title="Preview"
      note={data?.note ?? (data?.worker_id ? `as ${data.worker_id} last read it` : "samples as they are being read")}
      flush
      actions={
        <Select
          aria-label="Worker whose samples are shown"
          value={worker}
          onChange={(event) => setWorker(event.target.value)}
        >
          <option value="">any worker</option>
          {workers.map((one) => (
            <option key={one.id}>{one.id}</option>
          ))}
        </Select>
      }
    >
      {isPending && <Skeleton rows={6} />}
      {error && (
        <Empty tone="bad" title="No preview">
          {describe(error)}
        </Empty>
      )}
      {data && <Rows preview={data} />}
    </Panel>
  );
}

function Rows({ preview }: { preview: Preview }) {
  const names = preview.columns.map((column) => column.name);
  if (preview.rows.length === 0)
    return <Empty title="No sample">{preview.note ?? "Nothing was read from this dataset yet."}</Empty>;
  if (preview.rows.some((row) => names.some((name) => isImage(row[name])))) return <Gallery preview={preview} />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section aria-label="Samples" tabIndex={0} className="overflow-x-auto">
      <table className="w-full text-xs">
        <thead>
          <tr className="text-left text-2xs text-faint">
            <th scope="col" className="h-8 w-px border-b border-line px-3 font-medium whitespace-nowrap">
              Sample
            </th>
            {preview.columns.map((column) => (
              <th key={column.name} scope="col" className="h-8 border-b border-line px-3 font-medium whitespace-nowrap">
                {column.name} <span className="font-mono font-normal">{column.type}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {preview.rows.map((row, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: samples have no identity; the whole list is replaced at once
            <tr key={i} className="border-b border-line align-middle last:border-0">
              <td className="px-3 py-1.5 font-mono text-faint" title={preview.origins[i]?.file ?? undefined}>
                {preview.origins[i]?.index ?? i}
              </td>
              {names.map((name) => (
                <td key={name} className="px-3 py-1.5">
                  <Cell cell={row[name]} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
