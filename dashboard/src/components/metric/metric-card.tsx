import { Maximize2, Pin, PinOff } from "lucide-react";
import { memo, useCallback, useMemo, useRef, useState } from "react";
import { Chart } from "@/components/chart/chart";
import type { ChartInput } from "@/components/chart/input";
import type { MetricChart } from "@/components/chart/metric-chart";
import { Button } from "@/components/ui/button";
import { formatAge } from "@/lib/format";
import { isFormula, plainName } from "@/lib/formula";
import { shownRuns, useCatalog } from "@/stores/catalog";
import { togglePin, usePrefs } from "@/stores/prefs";
import { useView } from "@/stores/view";
import { ExportMenu } from "./export-menu";
import { newestOf, newestTime, summarize } from "./latest";
import type { Look, Only } from "./read-chart";
import { colorOf, showLatest } from "./show-latest";
import { useChart } from "./use-chart";

interface Props {
  metric: string;
  height?: number;
  only?: Only;
  /** The full view has its own buttons. */
  bare?: boolean;
}

/** Screen readers do not need a new sentence ten times a second, and each one costs layout. */
const SAY_EVERY_MS = 2000;

const lookOfPage = (): Look => ({ ...useView.getState(), xMetric: "" });
const zoomPage = (zoom: [number, number] | null): void => useView.getState().set({ zoom });

type Hole = null | "absent" | "zoomed" | { age: string };

function holeOf(metric: string, input: ChartInput, only: Props["only"]): Hole {
  if (input.plot.x.length > 0 || input.pending) return null;
  const runs = new Set(only ? [only.run] : shownRuns(useCatalog.getState().runs, useView.getState().runs));
  const newest = newestTime(metric, runs);
  if (newest === null) return "absent";
  return input.view.zoom ? "zoomed" : { age: formatAge(newest, Date.now()) };
}

/**
 * A metric with its newest value and its chart. Points change the DOM through refs: no React commit per delta.
 * Memoised, because the page above renders with every new list of runs and a chart reads the stores by itself.
 */
export const MetricCard = memo(function MetricCard({ metric, height = 172, only, bare = false }: Props) {
  const value = useRef<HTMLSpanElement>(null);
  const unit = useRef<HTMLSpanElement>(null);
  const chart = useRef<MetricChart | null>(null);
  const said = useRef(-Infinity);
  const [hole, setHole] = useState<Hole>(null);
  const name = plainName(metric);
  const pinned = usePrefs((prefs) => prefs.pins.includes(metric));
  const runOnly = only?.run;
  const rankOnly = only?.rank;
  const onDrawn = useCallback(
    (input: ChartInput) => {
      const mine = runOnly === undefined || rankOnly === undefined ? undefined : { run: runOnly, rank: rankOnly };
      const latest = newestOf(metric, input, rankOnly ?? null);
      showLatest({ value: value.current, unit: unit.current }, latest, colorOf(chart.current, input, latest.run));
      if (performance.now() - said.current > SAY_EVERY_MS) {
        said.current = performance.now();
        chart.current?.host.setAttribute("aria-label", summarize(name, input));
      }
      const next = holeOf(metric, input, mine);
      setHole((old) => (JSON.stringify(old) === JSON.stringify(next) ? old : next));
    },
    [metric, name, runOnly, rankOnly],
  );
  const drawn = useMemo(() => [metric], [metric]);
  const { hooks, subscribe } = useChart({ drawn, only, look: lookOfPage, onZoom: zoomPage, onDrawn });
  const cut = isFormula(metric) ? 0 : Math.max(metric.lastIndexOf("/"), metric.startsWith("sys.") ? 3 : -1) + 1;

  return (
    <article
      data-metric={metric}
      className="group relative min-w-0 contain-layout rounded-lg border border-line bg-surface"
    >
      <header className="flex h-9 items-center gap-2 pr-1.5 pl-3">
        <h2 className="min-w-0 truncate text-xs font-medium" title={name}>
          <span className="text-faint">{name.slice(0, cut)}</span>
          {name.slice(cut)}
        </h2>
        <div className="ml-auto flex shrink-0 items-center gap-0.5">
          {!bare && (
            <span className="flex opacity-0 transition-opacity group-focus-within:opacity-100 group-hover:opacity-100 max-md:hidden">
              <Button
                look="quiet"
                icon
                aria-label={pinned ? `Unpin ${name}` : `Pin ${name}`}
                onClick={() => togglePin(metric)}
              >
                {pinned ? <PinOff size={13} /> : <Pin size={13} />}
              </Button>
              <ExportMenu metric={name} chart={chart} />
            </span>
          )}
          <span ref={value} data-testid="latest" className="px-1 font-mono text-sm font-medium">
            –
          </span>
          <span ref={unit} className="text-2xs text-faint" />
          {!bare && (
            <Button
              look="quiet"
              icon
              aria-label={`Full view of ${name}`}
              onClick={() => useView.getState().set({ focus: metric })}
            >
              <Maximize2 size={13} />
            </Button>
          )}
        </div>
      </header>
      <div className="px-1 pb-1">
        <Chart
          hooks={hooks}
          subscribe={subscribe}
          label={name}
          height={height}
          onChart={(it) => (chart.current = it)}
        />
      </div>
      {hole !== null && <HoleNote hole={hole} />}
    </article>
  );
});

function HoleNote({ hole }: { hole: Exclude<Hole, null> }) {
  return (
    <div className="absolute inset-x-0 top-9 bottom-0 flex flex-col items-center justify-center gap-1 rounded-b-lg bg-surface text-xs text-muted">
      {hole === "absent" ? (
        <p>The runs on show have not logged this.</p>
      ) : (
        <>
          <p>
            {hole === "zoomed" ? "No point in the zoomed part." : `Nothing in this time range; last point ${hole.age}.`}
          </p>
          <button
            type="button"
            className="font-medium text-accent"
            onClick={() => useView.getState().set(hole === "zoomed" ? { zoom: null } : { range: "all" })}
          >
            {hole === "zoomed" ? "Reset zoom" : "Show all"}
          </button>
        </>
      )}
    </div>
  );
}
