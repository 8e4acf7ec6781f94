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
import { describeMode, downReaders, isReadBy, readersOfAll } from "@/lib/shards";
import { useTheme } from "@/stores/theme";

export function ShardPanel({ dataset }: { dataset: Dataset }) {
  const theme = useTheme((state) => state.theme);
  const [chosen, setChosen] = useState<number | null>(null);
  const { data, isPending, error } = useResource(
    ["shards", dataset.id],
    (it, signal) => it.shards(dataset.id, null, signal),
    { everyMs: 3000 },
  );
  const owners = readersOfAll(data ?? []);
  const down = downReaders(data ?? []);
  const shard = data?.find((one) => one.shard_id === chosen);
  const hidden = (dataset.shard_count ?? 0) - (data?.length ?? 0);
  return (
    <Panel title="Shards" note={describeMode(data ?? [])}>
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
                <span className="text-faint">{data.filter((one) => isReadBy(one, owner)).length}</span>
                {down.has(owner) && <span className="text-warn">down</span>}
              </li>
            ))}
            {owners.length === 0 && <li>Nobody reads this dataset now.</li>}
          </ul>
          {hidden > 0 && (
            <p className="text-xs text-muted">
              The first {formatCount(data.length)} of {formatCount(dataset.shard_count)} shards are shown.
            </p>
          )}
          {shard && <ShardFacts shard={shard} />}
        </div>
      )}
    </Panel>
  );
}

/** A loader mixes its shards: how far it is in one of them nobody knows, how far it is in all of them is measured. */
function progressOf(shard: Shard): string {
  const percent = formatPercent(shard.progress);
  return shard.mode === "queue" ? `${percent} counts` : `its worker has read ${percent} of its samples this epoch`;
}

function ShardFacts({ shard }: { shard: Shard }) {
  const readers = shard.readers;
  return (
    <div className="rounded-md bg-sunken px-3 py-2 text-xs">
      <p>
        Shard <span className="font-mono">{shard.shard_id}</span>: samples {formatCount(shard.start_index)} to{" "}
        {formatCount(shard.end_index)}
        {readers.length === 0 ? ", read by nobody" : `, ${progressOf(shard)}`}
      </p>
      <ul>
        {readers.map((one) => (
          <li key={`${one.worker_id} ${one.start_index}`}>
            {formatCount(one.start_index)} to {formatCount(one.end_index)}: {one.worker_id}
            {one.rank !== null && `, rank ${one.rank}`}
            {!one.alive && <span className="text-warn">, down</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}
