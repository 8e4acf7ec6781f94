import { useState } from "react";
import type { RunInfo } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { Panel } from "@/components/ui/panel";
import { RunSwatch } from "@/components/ui/run-swatch";
import { cx } from "@/lib/cx";
import { displayName } from "@/stores/catalog";
import { diffConfigs } from "./config-rows";

export function ConfigDiff({ runs }: { runs: readonly RunInfo[] }) {
  const [all, setAll] = useState(false);
  const rows = diffConfigs(runs.map((run) => run.config));
  const differing = rows.filter((row) => row.differs);
  const shown = all || runs.length < 2 ? rows : differing;
  const note = runs.length < 2 ? undefined : `${differing.length} of ${rows.length} keys differ`;
  return (
    <Panel
      title="Config"
      note={note}
      flush
      actions={
        runs.length > 1 && (
          <Button look="quiet" aria-pressed={all} onClick={() => setAll(!all)}>
            {all ? "Only differences" : "All keys"}
          </Button>
        )
      }
    >
      {shown.length === 0 ? (
        <p className="p-3 text-xs text-muted">
          {rows.length === 0 ? "These runs logged no config." : "The configs are the same."}
        </p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        <section aria-label="Config of the runs on show" tabIndex={0} className="overflow-x-auto">
          <table className="w-full text-xs">
            <thead>
              <tr className="text-left text-2xs text-faint">
                <th scope="col" className="h-8 border-b border-line px-3 font-medium">
                  Key
                </th>
                {runs.map((run) => (
                  <th key={run.run_id} scope="col" className="border-b border-line px-3 font-medium whitespace-nowrap">
                    <span className="flex items-center gap-1.5">
                      <RunSwatch run={run.run_id} />
                      <span title={displayName(run)} className="max-w-48 truncate">
                        {displayName(run)}
                      </span>
                    </span>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody className="font-mono">
              {shown.map((row) => (
                <tr key={row.key} className="border-b border-line last:border-0">
                  <th scope="row" className="h-8 px-3 text-left font-normal text-muted">
                    {row.key}
                  </th>
                  {row.values.map((value, i) => (
                    <td
                      key={runs[i]?.run_id}
                      className={cx("px-3", row.differs && value !== row.usual && "bg-accent-soft")}
                    >
                      {value}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </Panel>
  );
}
