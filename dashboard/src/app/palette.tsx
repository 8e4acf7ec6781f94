import { type KeyboardEvent, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { Dialog } from "@/components/ui/dialog";
import { useResource } from "@/hooks/resource";
import { useRested } from "@/hooks/rested";
import { cx } from "@/lib/cx";
import { useCluster } from "@/stores/cluster";
import { useOverlay } from "@/stores/overlay";
import { collectTargets, find, type Target, workerQuery, workerTarget } from "./targets";

const SHOWN = 12;
/** Places that others leave to workers whom the server found. */
const WORKERS = 4;

/** Workers of a fleet so large that the page knows none of them by name: null while the server looks for them. */
function useFleetTargets(text: string): Target[] | null {
  const folded = useCluster((state) => state.fleet.folded);
  const rested = useRested(text);
  const enabled = folded && text !== "";
  const { data, isPending } = useResource(
    ["search/workers", rested],
    (requests, signal) => requests.fleetWorkers({ ...workerQuery(rested), limit: SHOWN }, signal),
    { enabled: enabled && rested === text },
  );
  // What was found for another text must not be opened by an Enter that comes early.
  if (enabled && (isPending || rested !== text)) return null;
  return enabled ? (data?.workers ?? []).map(workerTarget) : [];
}

/** Ctrl-K: pages, runs, metrics, workers, tasks and datasets by name. */
export function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [, navigate] = useLocation();
  const targets = useMemo(collectTargets, []);
  const asked = useFleetTargets(text.trim());
  const workers = asked ?? [];
  const others = find(targets, text).slice(0, SHOWN - Math.min(WORKERS, workers.length));
  const found = [...others, ...workers].slice(0, SHOWN);
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
            {asked === null ? "Looking among the workers" : `Nothing is called “${text}”.`}
          </p>
        )}
      </div>
    </Dialog>
  );
}
