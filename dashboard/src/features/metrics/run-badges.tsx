import { useState } from "react";
import { Button } from "@/components/ui/button";
import { RunSwatch } from "@/components/ui/run-swatch";
import { StatusMark } from "@/components/ui/status";
import { useRunsOnShow, useShownRuns } from "@/hooks/runs";
import { cx } from "@/lib/cx";
import { stateText } from "@/lib/runs";
import { displayName, toggleRun, useCatalog } from "@/stores/catalog";
import { useView } from "@/stores/view";

/** More than this many are in the picker of the top bar; of those on show the rest is a click away. */
const BADGES = 12;

export function RunBadges() {
  const { runs, whole } = useCatalog();
  const shown = useShownRuns();
  const onShow = useRunsOnShow();
  const wanted = useView((view) => view.runs);
  const { set } = useView.getState();
  const [open, setOpen] = useState(false);
  const listed = runs.length <= BADGES ? runs : onShow;
  const few = open ? listed : listed.slice(0, BADGES);
  return (
    <fieldset aria-label="Runs" className="flex min-w-0 flex-wrap items-center gap-1.5">
      {few.map((run) => {
        const on = shown.includes(run.run_id);
        return (
          <button
            key={run.run_id}
            type="button"
            aria-pressed={on}
            data-run={run.run_id}
            data-state={run.state}
            title={stateText(run)}
            onClick={() => toggleRun(run.run_id)}
            className={cx(
              "flex h-7 max-w-60 items-center gap-1.5 rounded-md border px-2 text-xs transition-colors max-md:h-8",
              on ? "border-line-strong bg-surface" : "border-line bg-transparent text-faint hover:text-fg",
            )}
          >
            <span className={on ? "" : "opacity-40"}>
              <RunSwatch run={run.run_id} />
            </span>
            <span className={cx("truncate", !on && "line-through decoration-1")}>{displayName(run)}</span>
            <StatusMark status={run.state} />
            <span className="sr-only">{run.state}</span>
          </button>
        );
      })}
      {listed.length > BADGES && (
        <Button look="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Fewer" : `+${listed.length - BADGES} more`}
        </Button>
      )}
      <Button look="quiet" onClick={() => set({ runs: runs.map((run) => run.run_id) })}>
        All
      </Button>
      <Button look="quiet" onClick={() => set({ runs: [] })}>
        None
      </Button>
      <span className="text-xs text-faint">
        {wanted === null && runs.length > shown.length && "the newest "}
        {shown.length} of {runs.length}
        {!whole && "+"} runs
      </span>
    </fieldset>
  );
}
