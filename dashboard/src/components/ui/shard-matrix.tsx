import type { Shard } from "@/api/wire";
import { styleAt } from "@/lib/colors";
import { formatCount, formatPercent } from "@/lib/format";
import { useTheme } from "@/stores/theme";

interface Props {
  shards: readonly Shard[];
  /** Rows in this order; the colour of a worker is the colour of its row number. */
  workers: readonly string[];
  selected?: number | null;
  onSelect?(shard: Shard): void;
}

/** One square per shard, coloured by owner, filled by how much of it was read this epoch. */
export function ShardMatrix({ shards, workers, selected, onSelect }: Props) {
  const theme = useTheme((state) => state.theme);
  const slot = new Map(workers.map((id, i) => [id, i]));
  return (
    <div className="flex flex-wrap gap-1">
      {shards.map((shard) => {
        const at = shard.worker_id === null ? undefined : slot.get(shard.worker_id);
        const color = at === undefined ? "var(--idle)" : styleAt(at)[theme];
        const says = `shard ${shard.shard_id}: samples ${formatCount(shard.start_index)}–${formatCount(shard.end_index)}, ${
          shard.worker_id ?? "not assigned"
        }, read ${formatPercent(shard.progress)}`;
        return (
          <button
            key={shard.shard_id}
            type="button"
            title={says}
            aria-label={says}
            aria-pressed={selected === shard.shard_id}
            onClick={() => onSelect?.(shard)}
            className="relative size-5 overflow-hidden rounded-[3px] border hover:brightness-125 aria-pressed:outline-2 aria-pressed:outline-fg"
            style={{ borderColor: color }}
          >
            <span
              aria-hidden="true"
              className="absolute inset-x-0 bottom-0"
              style={{ height: `${shard.progress ?? 0}%`, background: color, opacity: 0.75 }}
            />
          </button>
        );
      })}
    </div>
  );
}
