import { type KeyboardEvent, useMemo, useState } from "react";
import { useLocation } from "wouter";
import type { Requests } from "@/api/requests";
import { Dialog } from "@/components/ui/dialog";
import { seriesStore } from "@/data/series-store";
import { useResource } from "@/hooks/resource";
import { useRested } from "@/hooks/rested";
import { cx } from "@/lib/cx";
import { useCatalog } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import { useOverlay } from "@/stores/overlay";
import { collectTargets, find, foreignMetric, metricQuery, type Target, workerQuery, workerTarget } from "./targets";

const SHOWN = 12;
/** Places that others leave to what the server found. */
const FOUND = 4;
/** Of names that begin alike the page may know many: those that it does not know must be among these. */
const ASKED = 50;

/** Whom the page was not told of: null while the server looks for them. What was found for another text must not be
 * opened by an Enter that comes early. */
function useFound(
  what: string,
  text: string,
  enabled: boolean,
  ask: (requests: Requests, text: string, signal: AbortSignal) => Promise<Target[]>,
): Target[] | null {
  const rested = useRested(text);
  const wanted = enabled && text !== "";
  const { data, isPending } = useResource(
    [`search/${what}`, rested],
    (requests, signal) => ask(requests, rested, signal),
    { enabled: wanted && rested === text },
  );
  if (wanted && (isPending || rested !== text)) return null;
  return wanted ? (data ?? []) : [];
}

/** Workers of a fleet so large that the page knows none of them by name. */
const askWorkers = async (requests: Requests, text: string, signal: AbortSignal): Promise<Target[]> =>
  (await requests.fleetWorkers({ ...workerQuery(text), limit: SHOWN }, signal)).workers.map(workerTarget);

/** Metrics of runs whose series are not here. */
const askMetrics = async (requests: Requests, text: string, signal: AbortSignal): Promise<Target[]> => {
  const known = new Set(seriesStore.names());
  const found = await requests.metricNames(metricQuery(text), ASKED, signal);
  return found.filter(({ metric }) => !known.has(metric)).map(foreignMetric);
};

/** Ctrl-K: pages, runs, metrics, workers, tasks and datasets by name. */
export function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [, navigate] = useLocation();
  const targets = useMemo(collectTargets, []);
  const workers = useFound(
    "workers",
    text.trim(),
    useCluster((state) => state.fleet.folded),
    askWorkers,
  );
  const metrics = useFound(
    "metrics",
    text.trim(),
    useCatalog((state) => state.outlined !== null),
    askMetrics,
  );
  const asked = [...(metrics ?? []).slice(0, FOUND), ...(workers ?? [])];
  const others = find(targets, text).slice(0, SHOWN - Math.min(FOUND, asked.length));
  const found = [...others, ...asked].slice(0, SHOWN);
  const close = () => useOverlay.setState({ search: false });
  const go = (target: Target | undefined) => {
    if (!target) return;
    close();
    navigate(target.open());
  };
  const onKey = (event: KeyboardEvent) => {
    const move = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (move !== 0) {
      event.preventDefault();
      setAt((at + move + found.length) % Math.max(1, found.length));
    }
    if (event.key === "Enter") {
      // Or the same key press would push the first button of whatever opens.
      event.preventDefault();
      go(found[at]);
    }
  };
  return (
    <Dialog title="Search" onClose={close} bare>
      <input
        autoFocus
        role="combobox"
        aria-label="Search pages, runs, metrics, workers and tasks"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${at}`}
        placeholder="Go to page, run, metric, worker, task…"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKey}
        className="h-11 w-full border-b border-line bg-transparent px-4 text-sm outline-none"
      />
      <div id="palette-list" role="listbox" aria-label="Results" className="max-h-96 overflow-y-auto py-1">
        {found.map((target, i) => (
          <button
            key={`${target.kind}/${target.name}`}
            id={`palette-${i}`}
            type="button"
            role="option"
            aria-selected={i === at}
            tabIndex={-1}
            onPointerEnter={() => setAt(i)}
            onClick={() => go(target)}
            className={cx("flex h-8 w-full items-center gap-3 px-4 text-left text-sm", i === at && "bg-hover")}
          >
            <span className="w-20 shrink-0 text-2xs text-faint">{target.kind}</span>
            <span className="truncate">{target.name}</span>
          </button>
        ))}
        {found.length === 0 && (
          <p className="px-4 py-3 text-xs text-muted">
            {workers === null || metrics === null ? "Looking on the server" : `Nothing is called “${text}”.`}
          </p>
        )}
      </div>
    </Dialog>
  );
}
