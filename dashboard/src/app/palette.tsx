import { type KeyboardEvent, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { Dialog } from "@/components/ui/dialog";
import { cx } from "@/lib/cx";
import { useOverlay } from "@/stores/overlay";
import { collectTargets, find, type Target } from "./targets";

const SHOWN = 12;

/** Ctrl-K: pages, runs, metrics, workers, tasks and datasets by name. */
export function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [, navigate] = useLocation();
  const targets = useMemo(collectTargets, []);
  const found = find(targets, text).slice(0, SHOWN);
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
        {found.length === 0 && <p className="px-4 py-3 text-xs text-muted">Nothing is called “{text}”.</p>}
      </div>
    </Dialog>
  );
}
