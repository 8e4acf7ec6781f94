import { useDeferredValue, useMemo, useState, useSyncExternalStore } from "react";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Select } from "@/components/ui/input";
import { Panel } from "@/components/ui/panel";
import { RunSwatch } from "@/components/ui/run-swatch";
import { useResource } from "@/hooks/resource";
import { formatCount } from "@/lib/format";
import { placeOf, unionOf } from "@/lib/media";
import { displayName, useCatalog } from "@/stores/catalog";
import { EntryView } from "./entry-view";
import { HistogramStrip } from "./histogram-strip";
import { ImageViewer } from "./image-viewer";
import { Position } from "./position";
import { StepSlider } from "./step-slider";

export const LOOK_MS = 5000;
const COLUMNS = 400;

interface Props {
  metric: string;
  kind: string;
  ranks: readonly number[];
  /** Those that have it, side by side. */
  runs: readonly string[];
  live: boolean;
  /** Without a box and a heading: whoever shows it has both. */
  bare?: boolean;
}

/** What runs logged under one name: a slider over the steps of all of them, and each run's view of the step. */
export function MediaCard({ metric, kind, ranks, runs, live, bare = false }: Props) {
  const [rank, setRank] = useState(ranks[0] ?? 0);
  const [position] = useState(() => new Position());
  const { data, error } = useResource(
    ["media-steps", metric, kind, rank, ...runs],
    (ask, signal) => Promise.all(runs.map((run) => ask.mediaSteps(run, { metric, kind, rank }, signal))),
    live ? { everyMs: LOOK_MS } : {},
  );
  const lists = useMemo(() => data?.map((one) => one.steps) ?? [], [data]);
  const steps = useMemo(() => unionOf(lists), [lists]);
  const names = useCatalog((state) => state.runs);
  const body = (run: string, own: readonly number[]) => {
    if (own.length === 0) return <p className="text-xs text-muted">Nothing of rank {rank}.</p>;
    if (kind === "image") return <ImageViewer {...{ run, metric, rank, position }} steps={own} />;
    if (kind === "histogram") return <StripOf {...{ run, metric, rank, live }} />;
    return <EntryAt {...{ run, metric, kind, rank, position }} steps={own} />;
  };
  const content =
    error && !data ? (
      <Empty title="It cannot be read" tone="bad">
        {error.message}
      </Empty>
    ) : !data ? (
      <Skeleton rows={4} />
    ) : (
      <div className="flex flex-col gap-3">
        <div className="grid grid-cols-[repeat(auto-fit,minmax(min(100%,280px),1fr))] gap-3">
          {runs.map((run, i) => (
            <div key={run} className="min-w-0">
              {runs.length > 1 && (
                <p className="mb-1 flex items-center gap-1.5 truncate text-2xs text-muted">
                  <RunSwatch run={run} />{" "}
                  {displayName(names.find((one) => one.run_id === run) ?? { run_id: run, name: null })}
                </p>
              )}
              {body(run, lists[i] ?? [])}
            </div>
          ))}
        </div>
        {kind !== "histogram" && steps.length > 1 && <StepSlider label={metric} steps={steps} position={position} />}
      </div>
    );
  if (bare) return content;
  return (
    <Panel
      title={<span className="font-mono text-xs break-all">{metric}</span>}
      note={data ? `${kind}, ${formatCount(steps.length)} ${steps.length === 1 ? "step" : "steps"}` : kind}
      actions={
        ranks.length > 1 && (
          <Select
            aria-label={`Rank of ${metric}`}
            value={rank}
            onChange={(event) => setRank(Number(event.target.value))}
          >
            {ranks.map((one) => (
              <option key={one} value={one}>
                rank {one}
              </option>
            ))}
          </Select>
        )
      }
    >
      {content}
    </Panel>
  );
}

function StripOf({ run, metric, rank, live }: { run: string; metric: string; rank: number; live: boolean }) {
  const { data, error } = useResource(
    ["media-strip", run, metric, rank],
    (ask, signal) => ask.mediaEntries(run, { metric, kind: "histogram", rank, limit: COLUMNS }, signal),
    live ? { everyMs: LOOK_MS } : {},
  );
  if (error && !data) return <p className="text-xs text-bad">{error.message}</p>;
  if (!data) return <Skeleton rows={3} />;
  return <HistogramStrip label={metric} entries={data.entries} />;
}

interface AtProps {
  run: string;
  metric: string;
  kind: string;
  rank: number;
  steps: readonly number[];
  position: Position;
}

/** Follows the slider when it rests: what it passed by is not asked for. */
function EntryAt({ run, metric, kind, rank, steps, position }: AtProps) {
  const wanted = useDeferredValue(useSyncExternalStore(position.subscribe, () => position.step));
  const step = steps[wanted === null ? steps.length - 1 : placeOf(steps, wanted)] ?? 0;
  const { data, error } = useResource(["media-entry", run, metric, kind, rank, step], (ask, signal) =>
    ask.mediaEntries(run, { metric, kind, rank, from_step: step, to_step: step, limit: 1 }, signal),
  );
  if (error) return <p className="text-xs text-bad">{error.message}</p>;
  const entry = data?.entries[0];
  if (!entry) return data ? <p className="text-xs text-muted">Nothing at step {step}.</p> : <Skeleton rows={3} />;
  return <EntryView {...{ run, metric, kind, entry }} />;
}
