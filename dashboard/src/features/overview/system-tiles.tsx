import { useCallback } from "react";
import { Sparkline } from "@/components/chart/sparkline";
import { systemHistory } from "@/data/system-history";
import { formatValue } from "@/lib/format";
import { roundFigure, SYSTEM_FIGURES, type SystemFigure } from "@/lib/system-figures";
import { useCluster } from "@/stores/cluster";

function Tile({ tile }: { tile: SystemFigure }) {
  const value = useCluster((state) => state.metrics?.[tile.key] ?? null);
  const empty = useCluster((state) => (state.metrics === null ? "not known yet" : tile.empty));
  const read = useCallback(() => systemHistory.values[tile.key], [tile.key]);
  return (
    <div data-testid={tile.key} className="min-w-0 rounded-lg border border-line bg-surface px-3 pt-2.5 pb-2">
      <p className="truncate text-2xs text-faint">{tile.label}</p>
      <p className="text-lg leading-7 font-semibold tracking-tight">
        {value !== null && <span className="mr-1">{formatValue(roundFigure(value))}</span>}
        <span className="text-xs font-normal text-muted">{value === null ? empty : tile.unit}</span>
      </p>
      <Sparkline label={`${tile.label}, last minutes`} read={read} subscribe={systemHistory.subscribe} height={36} />
    </div>
  );
}

export function SystemTiles() {
  return (
    <div className="grid grid-cols-4 gap-3 max-lg:grid-cols-2 max-[420px]:grid-cols-1">
      {SYSTEM_FIGURES.map((tile) => (
        <Tile key={tile.key} tile={tile} />
      ))}
    </div>
  );
}
