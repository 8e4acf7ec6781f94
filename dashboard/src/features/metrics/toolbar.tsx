import { Pause, Play, RotateCcw } from "lucide-react";
import { BaselinePicker, GroupPicker } from "@/components/metric/compare-pickers";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { Segmented } from "@/components/ui/segmented";
import { seriesStore } from "@/data/series-store";
import { useNow } from "@/hooks/now";
import { matcher } from "@/lib/matcher";
import { shownRuns, useCatalog } from "@/stores/catalog";
import { usePause } from "@/stores/pause";
import { useView } from "@/stores/view";
import { ChartMenu } from "./chart-menu";

const X_OPTIONS = [
  { value: "step", label: "Step" },
  { value: "rel", label: "Relative", title: "Time since the run began" },
  { value: "wall", label: "Wall", title: "Time of day" },
] as const;
const RANK_OPTIONS = [
  { value: "mean", label: "Mean", title: "One line per run: the mean of its ranks, band from lowest to highest" },
  { value: "all", label: "Each rank", title: "One line per rank" },
] as const;

export function togglePause(): void {
  usePause.setState((old) => ({ paused: !old.paused, at: seriesStore.received }));
}

function PauseButton() {
  const { paused, at } = usePause();
  useNow(paused ? 500 : 60_000);
  const missed = seriesStore.received - at;
  return (
    <Button aria-pressed={paused} onClick={togglePause} title="Space">
      {paused ? <Play size={13} /> : <Pause size={13} />}
      {paused ? `Resume · ${missed.toLocaleString("en-US")} new points` : "Pause"}
    </Button>
  );
}

export function Toolbar() {
  const { search, runs, x, smoothing, logY, ranks, attempts, zoom, set } = useView();
  const again = useCatalog((state) => {
    const shown = new Set(shownRuns(state.runs, runs));
    return state.runs.some((run) => run.superseded_points > 0 && shown.has(run.run_id));
  });
  const { problem } = matcher(search);
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Input
        id="metric-search"
        type="search"
        aria-label="Search metrics by regular expression"
        aria-invalid={problem !== null}
        title={problem ?? "Regular expression; press / to get here"}
        placeholder="Filter metrics (regex)"
        value={search}
        onChange={(event) => set({ search: event.target.value })}
        className="w-52 max-md:w-full"
      />
      <Segmented label="X axis" value={x} options={X_OPTIONS} onChange={(value) => set({ x: value, zoom: null })} />
      <Segmented label="Ranks" value={ranks} options={RANK_OPTIONS} onChange={(value) => set({ ranks: value })} />
      <label className="flex h-7 items-center gap-2 text-xs text-muted">
        Smoothing
        <input
          type="range"
          min={0}
          max={0.99}
          step={0.01}
          value={smoothing}
          onChange={(event) => set({ smoothing: Number(event.target.value) })}
          className="w-24 accent-(--accent)"
        />
        <output className="w-7 font-mono text-fg">{smoothing.toFixed(2)}</output>
      </label>
      <Button
        aria-pressed={logY}
        className={logY ? "border-accent! text-accent" : ""}
        onClick={() => set({ logY: !logY })}
      >
        Log y
      </Button>
      <ChartMenu />
      <GroupPicker />
      <BaselinePicker />
      {(again || attempts === "all") && (
        <Button
          aria-pressed={attempts === "all"}
          className={attempts === "all" ? "border-accent! text-accent" : ""}
          title="Also what earlier attempts measured of steps that were done again"
          onClick={() => set({ attempts: attempts === "all" ? "newest" : "all" })}
        >
          Superseded
        </Button>
      )}
      {zoom && (
        <Button onClick={() => set({ zoom: null })}>
          <RotateCcw size={13} /> Reset zoom
        </Button>
      )}
      <div className="md:ml-auto">
        <PauseButton />
      </div>
    </div>
  );
}
