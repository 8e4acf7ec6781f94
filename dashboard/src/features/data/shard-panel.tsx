import { useState } from "react";
import type { Dataset, Shard } from "@/api/wire";
import { describe } from "@/components/ui/confirm";
import { Empty, Skeleton } from "@/components/ui/empty";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { ShardMatrix } from "@/components/ui/shard-matrix";
import { useResource } from "@/hooks/resource";
import { styleAt } from "@/lib/colors";
import { formatCount, formatPercent } from "@/lib/format";
import { useTheme } from "@/stores/theme";

export function ShardPanel({ dataset }: { dataset: Dataset }) {
  const theme = useTheme((state) => state.theme);
  const [chosen, setChosen] = useState<number | null>(null);
  const { data, isPending, error } = useResource(
    ["shards", dataset.id],
    (it, signal) => it.shards(dataset.id, null, signal),
    { everyMs: 3000 },
  );
  const owners = [...new Set((data ?? []).flatMap((shard) => shard.worker_id ?? []))].sort((a, b) =>
    a.localeCompare(b, "en", { numeric: true }),
  );
  const shard = data?.find((one) => one.shard_id === chosen);
  return (
    <Panel
      title="Shards"
      note={
        dataset.queues?.length
          ? "who would own each; in queue mode whoever is free reads it"
          : "one square per shard: colour is its worker, fill is how much was read this epoch"
      }
    >
      {isPending && <Skeleton rows={4} />}
      {error && (
        <Empty tone="bad" title="The shards could not be read">
          {describe(error)}
        </Empty>
      )}
      {data && (
        <div className="flex flex-col gap-3">
          <ShardMatrix shards={data} workers={owners} selected={chosen} onSelect={(one) => setChosen(one.shard_id)} />
          <ul className="flex flex-wrap gap-x-4 gap-y-1 text-xs text-muted">
            {owners.map((owner, i) => (
              <li key={owner} className="flex items-center gap-1.5">
                <span aria-hidden="true" className="size-2 rounded-[2px]" style={{ background: styleAt(i)[theme] }} />
                <PageLink page="cluster" id={owner} className="hover:underline">
                  {owner}
                </PageLink>
                <span className="text-faint">{data.filter((one) => one.worker_id === owner).length}</span>
              </li>
            ))}
            {owners.length === 0 && <li>No worker reads this dataset now.</li>}
          </ul>
          {shard && <ShardFacts shard={shard} />}
        </div>
      )}
    </Panel>
  );
}

function ShardFacts({ shard }: { shard: Shard }) {
  return (
    <p className="rounded-md bg-sunken px-3 py-2 text-xs">
      Shard <span className="font-mono">{shard.shard_id}</span>: samples {formatCount(shard.start_index)} to{" "}
      {formatCount(shard.end_index)},{" "}
      {shard.worker_id ? `read by ${shard.worker_id}, ${formatPercent(shard.progress)} done` : "not assigned"}
      {shard.file_paths?.length ? ` · ${shard.file_paths.join(", ")}` : ""}
    </p>
  );
}
