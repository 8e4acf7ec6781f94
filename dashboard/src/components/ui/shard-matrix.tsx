import type { Shard, ShardReader } from "@/api/wire";
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

/** One square per shard, coloured by who reads it, filled by how much of it was read this epoch. */
export function ShardMatrix({ shards, workers, selected, onSelect }: Props) {
  const theme = useTheme((state) => state.theme);
  const slot = new Map(workers.map((id, i) => [id, i]));
  const colorOf = (worker: string | null) => {
    const at = worker === null ? undefined : slot.get(worker);
    return at === undefined ? "var(--idle)" : styleAt(at)[theme];
  };
  return (
    <div className="flex flex-wrap gap-1">
      {shards.map((shard) => {
        const readers = shard.readers;
        const says = describeShard(shard, readers);
        return (
          <button
            key={shard.shard_id}
            type="button"
            title={says}
            aria-label={says}
            aria-pressed={selected === shard.shard_id}
            onClick={() => onSelect?.(shard)}
            className="relative flex size-5 overflow-hidden rounded-[3px] border hover:brightness-125 aria-pressed:outline-2 aria-pressed:outline-fg"
            style={{
              borderColor: colorOf(shard.worker_id),
              borderStyle: readers.some((one) => !one.alive) ? "dashed" : "solid",
            }}
          >
            {readers.map((one) => (
              <span
                key={`${one.worker_id} ${one.start_index}`}
                aria-hidden="true"
                className="relative h-full"
                style={{ flexGrow: one.end_index - one.start_index, background: tint(colorOf(one.worker_id)) }}
              >
                <span
                  className="absolute inset-x-0 bottom-0"
                  style={{
                    height: `${shard.progress ?? 0}%`,
                    background: colorOf(one.worker_id),
                    opacity: one.alive ? 0.75 : 0.3,
                  }}
                />
              </span>
            ))}
          </button>
        );
      })}
    </div>
  );
}

function tint(color: string): string {
  return `color-mix(in srgb, ${color} 18%, transparent)`;
}

function describeShard(shard: Shard, readers: readonly ShardReader[]): string {
  const range = `samples ${formatCount(shard.start_index)}–${formatCount(shard.end_index)}`;
  const part = (one: ShardReader) =>
    readers.length > 1 ? ` ${formatCount(one.start_index)}–${formatCount(one.end_index)}` : "";
  const who = readers.map((one) => `${one.worker_id}${part(one)}${one.alive ? "" : ", down"}`).join("; ");
  return `shard ${shard.shard_id}: ${range}, ${who || "nobody"}, read ${formatPercent(shard.progress)}`;
}
