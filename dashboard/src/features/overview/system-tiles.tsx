import { useCallback } from "react";
import { Sparkline } from "@/components/chart/sparkline";
import { type SystemKey, systemHistory } from "@/data/system-history";
import { formatValue } from "@/lib/format";
import { useCluster } from "@/stores/cluster";

const TILES: readonly { key: SystemKey; label: string; unit: string; empty: string }[] = [
  { key: "checkpoint_throughput", label: "Checkpoint throughput", unit: "MB/s", empty: "no save measured yet" },
  { key: "coordinator_rps", label: "Coordinator requests", unit: "/s", empty: "no request measured yet" },
  { key: "barrier_latency_p99", label: "Barrier latency p99", unit: "ms", empty: "no barrier measured yet" },
  { key: "shard_assignment_time", label: "Shard assignment", unit: "ms", empty: "no assignment measured yet" },
];

function round(value: number | null | undefined): number | null {
  if (value === null || value === undefined) return null;
  return value >= 100 ? Math.round(value) : Math.round(value * 10) / 10;
}

function Tile({ tile }: { tile: (typeof TILES)[number] }) {
  const value = useCluster((state) => state.metrics?.[tile.key] ?? null);
  const read = useCallback(() => systemHistory.values[tile.key], [tile.key]);
  return (
    <div data-testid={tile.key} className="min-w-0 rounded-lg border border-line bg-surface px-3 pt-2.5 pb-2">
      <p className="truncate text-2xs text-faint">{tile.label}</p>
      <p className="text-lg leading-7 font-semibold tracking-tight">
        {value !== null && <span className="mr-1">{formatValue(round(value))}</span>}
        <span className="text-xs font-normal text-muted">{value === null ? tile.empty : tile.unit}</span>
      </p>
      <Sparkline label={`${tile.label}, last minutes`} read={read} subscribe={systemHistory.subscribe} height={36} />
    </div>
  );
}

export function SystemTiles() {
  return (
    <div className="grid grid-cols-4 gap-3 max-lg:grid-cols-2 max-[420px]:grid-cols-1">
      {TILES.map((tile) => (
        <Tile key={tile.key} tile={tile} />
      ))}
    </div>
  );
}
