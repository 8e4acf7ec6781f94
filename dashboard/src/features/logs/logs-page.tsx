import { useCallback, useEffect, useState } from "react";
import { Button } from "@/components/ui/button";
import { describe } from "@/components/ui/confirm";
import { Empty } from "@/components/ui/empty";
import { Page } from "@/components/ui/page";
import { logRing } from "@/data/log-ring";
import { requests } from "@/data/source";
import { useNow } from "@/hooks/now";
import { formatCount } from "@/lib/format";
import { isTyping } from "@/lib/keys";
import { oldestFirst, timeOf } from "@/lib/logs";
import { toast } from "@/stores/overlay";
import { useView } from "@/stores/view";
import { Filters } from "./filters";
import { Histogram } from "./histogram";
import { LogDetail } from "./log-detail";
import { LogList } from "./log-list";
import { useLogView } from "./use-log-view";

const OLDER = 2000;

/** Asks the store for lines before the oldest one here, with the same filters. */
async function loadOlder(): Promise<void> {
  const oldest = logRing.at(logRing.first);
  const { level, task, worker, logSearch } = useView.getState();
  try {
    const lines = await requests().logs({
      limit: OLDER,
      ...(oldest && { before: timeOf(oldest) / 1000 }),
      ...(level === "error" && { level }),
      ...(task && { task_id: task }),
      ...(worker && { worker_id: worker }),
      ...(logSearch && { q: logSearch }),
    });
    const added = logRing.prepend(oldestFirst(lines));
    toast(added > 0 ? `${added.toLocaleString("en-US")} older lines.` : "There are no older lines.");
  } catch (cause) {
    toast(describe(cause), "bad");
  }
}

export default function LogsPage() {
  const { level, task, worker, logSearch, at } = useView();
  const [paused, setPaused] = useState(false);
  const [follow, setFollow] = useState(!at);
  const [goto, setGoto] = useState<{ index: number } | null>(null);
  const { view, version } = useLogView({ level, task, worker, search: logSearch }, paused);
  const [seen, setSeen] = useState(0);
  useNow(paused ? 1000 : 60_000);
  const onFollow = useCallback((next: boolean) => {
    setFollow(next);
    setSeen(logRing.next);
    if (next) {
      setPaused(false);
      useView.getState().set({ at: "" });
    }
  }, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      if (event.key === "/") document.getElementById("log-search")?.focus();
      else if (event.key === " ") setPaused((old) => !old);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const index = at ? view.indexOf(at) : -1;
  const line = index >= 0 ? view.at(index) : undefined;
  const filtered = Boolean(level || task || worker || logSearch);
  const all = logRing.next - logRing.first;
  const note = [
    `${formatCount(view.length)} lines${filtered ? ` of ${formatCount(all)}` : ""}`,
    logRing.dropped > 0 && `${formatCount(logRing.dropped)} older ones left this window`,
    logRing.skipped > 0 && `${formatCount(logRing.skipped)} came too fast for it: strata logs has them`,
  ]
    .filter(Boolean)
    .join(" · ");
  return (
    <Page title="Logs" note={note} fill actions={<Button onClick={loadOlder}>Load older</Button>}>
      <Filters view={view} paused={paused} onPause={() => setPaused(!paused)} />
      <div className="flex min-h-80 flex-1 flex-col overflow-hidden rounded-lg border border-line bg-surface">
        {view.length === 0 ? (
          <Empty title={filtered ? "No line matches" : "No log line yet"} className="flex-1">
            {filtered
              ? "Loosen the filters, or load older lines."
              : "What workers print and log shows here as it happens."}
          </Empty>
        ) : (
          <>
            <Histogram
              view={view}
              onPick={(time) => {
                onFollow(false);
                setGoto({ index: view.indexAt(time) });
              }}
            />
            <LogList
              view={view}
              version={version}
              follow={follow && !paused}
              onFollow={onFollow}
              waiting={logRing.next - seen}
              goto={goto}
            />
          </>
        )}
        {line && <LogDetail line={line} />}
        {at && !line && view.length > 0 && (
          <p className="border-t border-line px-3 py-2 text-xs text-muted">
            The linked line is not in this window; load older lines to reach it.
          </p>
        )}
      </div>
    </Page>
  );
}
