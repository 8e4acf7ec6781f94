import { ChevronDown } from "lucide-react";
import { useState } from "react";
import { Popover } from "@/components/ui/popover";
import { RunSwatch } from "@/components/ui/run-swatch";
import { useShownRuns } from "@/hooks/runs";
import { stateText } from "@/lib/runs";
import { displayName, toggleRun, useCatalog } from "@/stores/catalog";
import { useView } from "@/stores/view";

const LIST_LIMIT = 200;

function RunList() {
  const { runs, whole } = useCatalog();
  const shown = useShownRuns();
  const none = whole ? "No run matches." : "None of the newest matches; the others are on their way.";
  const [filter, setFilter] = useState("");
  const needle = filter.toLowerCase();
  const found = runs.filter((run) => `${run.run_id} ${run.name ?? ""}`.toLowerCase().includes(needle));
  const pick = (ids: string[]) => useView.getState().set({ runs: ids });
  return (
    <div className="w-72">
      <input
        aria-label="Filter runs"
        placeholder="Filter runs"
        value={filter}
        onChange={(event) => setFilter(event.target.value)}
        className="h-9 w-full border-b border-line bg-transparent px-3 text-sm outline-none"
      />
      <ul className="max-h-72 overflow-y-auto py-1">
        {found.slice(0, LIST_LIMIT).map((run) => (
          <li key={run.run_id}>
            <label className="flex h-8 cursor-pointer items-center gap-2 px-3 hover:bg-hover">
              <input type="checkbox" checked={shown.includes(run.run_id)} onChange={() => toggleRun(run.run_id)} />
              <RunSwatch run={run.run_id} />
              <span className="truncate">{displayName(run)}</span>
              <span title={stateText(run)} className="ml-auto text-2xs text-faint">
                {run.state}
              </span>
            </label>
          </li>
        ))}
        {found.length === 0 && <li className="px-3 py-2 text-muted">{runs.length ? none : "No runs yet."}</li>}
      </ul>
      <div className="flex gap-3 border-t border-line px-3 py-2 text-xs font-medium text-accent">
        <button type="button" onClick={() => pick(found.map((run) => run.run_id))}>
          All{filter && " matching"}
        </button>
        <button type="button" onClick={() => pick([])}>
          None
        </button>
        <button type="button" className="ml-auto" onClick={() => useView.getState().set({ runs: null })}>
          Newest
        </button>
      </div>
    </div>
  );
}

export function RunPicker() {
  const { runs, whole } = useCatalog();
  const shown = useShownRuns();
  const only = shown.length === 1 ? runs.find((run) => run.run_id === shown[0]) : undefined;
  const text = only ? displayName(only) : `${shown.length} of ${runs.length}${whole ? "" : "+"} runs`;
  return (
    <Popover
      label={`Choose runs: ${text}`}
      triggerClassName="max-w-56 min-w-0 shrink"
      trigger={
        <>
          <span className="truncate">{text}</span>
          <ChevronDown size={13} className="shrink-0 text-faint" aria-hidden="true" />
        </>
      }
    >
      <RunList />
    </Popover>
  );
}
