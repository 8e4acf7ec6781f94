import type { Shard, Worker } from "@/api/wire";
import { describe } from "@/components/ui/confirm";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Select } from "@/components/ui/input";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { ProgressBar } from "@/components/ui/progress";
import { ShardMatrix } from "@/components/ui/shard-matrix";
import { useResource } from "@/hooks/resource";
import { styleAt } from "@/lib/colors";
import { formatCount, formatPercent } from "@/lib/format";
import { downReaders, isReadBy, readersOfAll, samplesReadBy } from "@/lib/shards";
import { useCluster } from "@/stores/cluster";
import { useTheme } from "@/stores/theme";
import { useView } from "@/stores/view";

function mean(values: readonly (number | null)[]): number | null {
  const known = values.filter((value): value is number => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

function OwnerRow({
  owner,
  index,
  shards,
  worker,
  down,
}: {
  owner: string;
  index: number;
  shards: readonly Shard[];
  worker: Worker | undefined;
  down: boolean;
}) {
  const theme = useTheme((state) => state.theme);
  const samples = samplesReadBy(shards, owner);
  const progress = mean(shards.map((shard) => shard.progress));
  return (
    <li className="grid grid-cols-[minmax(0,250px)_64px_90px_minmax(0,1fr)_44px] items-center gap-3 py-1 text-xs max-sm:grid-cols-[minmax(0,1fr)_64px_minmax(0,1fr)_40px]">
      <span className="flex min-w-0 items-center gap-2">
        <span
          aria-hidden="true"
          className="size-2 shrink-0 rounded-[2px]"
          style={{ background: styleAt(index)[theme] }}
        />
        <PageLink page="cluster" id={owner} title={owner} className="truncate hover:underline">
          {worker ? `rank ${worker.rank ?? "–"}` : owner}
          {worker && <span className="ml-2 text-faint max-sm:hidden">{owner}</span>}
        </PageLink>
        {down && <span className="text-warn">down</span>}
      </span>
      <span className="text-right whitespace-nowrap">{shards.length} shards</span>
      <span className="text-right text-muted max-sm:hidden">{formatCount(samples)}</span>
      <ProgressBar value={progress} label={`${owner}, epoch ${worker?.current_epoch ?? "unknown"}`} />
      <span className="text-right font-mono">{formatPercent(progress)}</span>
    </li>
  );
}

export function ShardsTab() {
  const { datasets, workers, loaded } = useCluster();
  const chosen =
    useView((view) => view.dataset) || (datasets.find((one) => one.progress !== null)?.id ?? datasets[0]?.id ?? "");
  const shards = useResource(["shards", chosen], (it, signal) => it.shards(chosen, null, signal), {
    everyMs: 3000,
    enabled: chosen !== "",
  });
  const dataset = datasets.find((one) => one.id === chosen);
  if (!loaded) return <Skeleton rows={6} />;
  if (datasets.length === 0)
    return <Empty title="No dataset is registered">Register one with DatasetRegistry or on the Data page.</Empty>;

  const owners = readersOfAll(shards.data ?? []);
  const down = downReaders(shards.data ?? []);
  const orphans = (shards.data ?? []).filter((shard) => shard.readers.length === 0).length;
  const counts = owners.map((owner) => (shards.data ?? []).filter((shard) => isReadBy(shard, owner)).length);
  const spread = counts.length > 0 ? Math.max(...counts) - Math.min(...counts) : null;
  return (
    <Panel
      title="Shard distribution"
      note={
        dataset &&
        `epoch ${dataset.epoch ?? "–"} · ${formatCount(dataset.shard_count)} shards${spread === null ? "" : ` · max − min ${spread}`}`
      }
      actions={
        <Select
          aria-label="Dataset"
          value={chosen}
          onChange={(event) => useView.getState().set({ dataset: event.target.value })}
        >
          {datasets.map((one) => (
            <option key={one.id} value={one.id}>
              {one.name ?? one.id}
            </option>
          ))}
        </Select>
      }
    >
      {shards.isPending && <Skeleton rows={6} />}
      {shards.isError && (
        <Empty tone="bad" title="The shards could not be read">
          {describe(shards.error)}
        </Empty>
      )}
      {shards.data && (
        <div className="flex flex-col gap-4">
          {owners.length === 0 && <p className="text-xs text-muted">Nobody reads this dataset now.</p>}
          <ul>
            {owners.map((owner, i) => (
              <OwnerRow
                key={owner}
                owner={owner}
                index={i}
                shards={(shards.data ?? []).filter((shard) => isReadBy(shard, owner))}
                down={down.has(owner)}
                worker={workers.find((one) => one.id === owner)}
              />
            ))}
          </ul>
          {orphans > 0 && owners.length > 0 && <p className="text-xs text-warn">{orphans} shards have no worker.</p>}
          <ShardMatrix shards={shards.data} workers={owners} />
        </div>
      )}
    </Panel>
  );
}
