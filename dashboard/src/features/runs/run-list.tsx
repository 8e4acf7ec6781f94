import { useState } from "react";
import { ApiError } from "@/api/client";
import type { RunInfo, RunTable } from "@/api/wire";
import { BaselinePicker } from "@/components/metric/compare-pickers";
import { describe } from "@/components/ui/confirm";
import { Empty, Skeleton } from "@/components/ui/empty";
import { NoRuns } from "@/components/ui/no-runs";
import { Page } from "@/components/ui/page";
import { Panel } from "@/components/ui/panel";
import { Sentinel } from "@/components/ui/sentinel";
import { Table } from "@/components/ui/table";
import { useNow } from "@/hooks/now";
import { useRunValues } from "@/hooks/run-values";
import { useRunsOnShow, useShownRuns } from "@/hooks/runs";
import { formatCount } from "@/lib/format";
import { DEFAULT_VIEW } from "@/lib/view-codec";
import { useCatalog } from "@/stores/catalog";
import { useMay } from "@/stores/rights";
import { useView } from "@/stores/view";
import { BulkBar } from "./bulk-bar";
import { ColumnPicker } from "./column-picker";
import { ConfigDiff } from "./config-diff";
import { DeleteDialog } from "./delete-dialog";
import { LabelsDialog } from "./labels-dialog";
import { runColumns } from "./run-columns";
import { RunFilter } from "./run-filter";
import { defaultColumns, nextSort, toRows } from "./run-rows";
import { useRunTable } from "./use-run-table";

const ROWS = 300;
/** A row has many cells: the first screen is mounted at once, the rest as the page is scrolled. */
const FIRST = 40;
const PAGE = 60;
/** Asked for until the names are known, and as long as no other column is shown: then the first rows wait for one answer. */
const LIKELY = ["loss.last", "loss.min", "train/loss.last", "train/loss.min"];

/** The server filters and sorts; what it says of each run comes on the stream. */
export function RunList() {
  const now = useNow(2000);
  const { runs, loaded, whole } = useCatalog();
  const shown = useShownRuns();
  const onShow = useRunsOnShow();
  const maySelect = useMay("PATCH /runs");
  const { runFilter, runSort, runColumns: wanted, baseline } = useView();
  const [known, setKnown] = useState<RunTable>();
  const [limit, setLimit] = useState(FIRST);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [renaming, setRenaming] = useState<string | null>(null);
  const [noting, setNoting] = useState<RunInfo | null>(null);
  const [deleting, setDeleting] = useState<RunInfo | null>(null);
  const names = known?.names ?? [];
  const columns = wanted ?? defaultColumns(names);
  const down = runSort.startsWith("-");
  const sort = down ? runSort.slice(1) : runSort;
  const asked = columns.every((name) => LIKELY.includes(name)) ? LIKELY : columns;
  const order = { filter: runFilter, sort, descending: down, limit: ROWS };
  const { data, error, refetch } = useRunTable(order, asked);
  // While rendering: an effect would show forty rows without their columns first.
  if (data !== undefined && data !== known) setKnown(data);
  const compared = useRunValues([baseline], columns, baseline !== "").values.get(baseline);
  const rows = toRows({ runs, whole }, data ?? known, now).slice(0, ROWS); // a filter that cannot be read changes nothing
  const isShort = !whole && data !== undefined && rows.length < data.ids.length;
  // The newest stand for an answer that is not here; nobody may take them for the first of another order.
  const isOrdered = runFilter !== "" || runSort !== DEFAULT_VIEW.runSort;
  const isAwaited = data === undefined ? isOrdered && error === null : isShort && rows.length === 0;
  // Nobody deletes what they do not see.
  const chosen = rows.map(({ run }) => run).filter((run) => selected.has(run.run_id));
  const problem = error === null || isElsewhere(error) ? null : describe(error);
  const toggle = (id: string) =>
    setSelected((old) => new Set(old.has(id) ? [...old].filter((one) => one !== id) : [...old, id]));
  return (
    <Page
      title="Runs"
      note={[
        `${formatCount(shown.length)} of ${formatCount(data?.total ?? runs.length)}${loaded && !whole && !data ? "+" : ""} on show`,
        data && runFilter && `${formatCount(data.matched)} found`,
        isShort ? "some are still on their way" : data && data.matched > ROWS && `the first ${ROWS} are listed`,
      ]
        .filter(Boolean)
        .join(" · ")}
      actions={
        <>
          <RunFilter error={problem} />
          <BaselinePicker />
          <ColumnPicker names={names} chosen={columns} />
        </>
      }
    >
      {problem && (
        <p id="run-filter-note" role="alert" className="text-xs text-bad">
          {problem}
        </p>
      )}
      {!loaded || isAwaited ? (
        <Skeleton rows={6} />
      ) : runs.length === 0 ? (
        <NoRuns />
      ) : (
        <>
          <Panel flush>
            {chosen.length > 0 && (
              <BulkBar runs={chosen} onClear={() => setSelected(new Set())} onChanged={() => void refetch()} />
            )}
            {rows.length === 0 ? (
              <Empty title="No run is like that">
                {runFilter
                  ? "Archived runs are found by archived:yes."
                  : "All of them are archived: archived:yes lists them."}
              </Empty>
            ) : (
              <Table
                label="Runs"
                rows={rows.slice(0, limit)}
                columns={runColumns({
                  now,
                  shown,
                  columns,
                  baseline: baseline ? { run: baseline, values: compared ?? {} } : null,
                  selected: maySelect ? selected : null,
                  renaming,
                  onSelect: toggle,
                  onRename: setRenaming,
                  onEdit: setNoting,
                  onDelete: setDeleting,
                  ofTasks: rows.some(({ run }) => run.task_id !== null),
                })}
                rowKey={(row) => row.run.run_id}
                rowClass={({ run }) => (selected.has(run.run_id) ? "bg-accent-soft" : undefined)}
                sort={{ key: sort, down }}
                onSort={(key) => useView.getState().set({ runSort: nextSort(runSort, key) })}
              />
            )}
            {rows.length > limit && (known || error) && <Sentinel onSeen={() => setLimit(limit + PAGE)} />}
          </Panel>
          <ConfigDiff runs={onShow} />
        </>
      )}
      {noting && <LabelsDialog run={noting} onClose={() => setNoting(null)} />}
      {deleting && <DeleteDialog run={deleting} onClose={() => setDeleting(null)} />}
    </Page>
  );
}

/** A recording is asked, or the server is away, as the banner says: the filter is not what is wrong. */
function isElsewhere(error: unknown): boolean {
  return error instanceof ApiError && (error.code === "demo" || error.status === 0);
}
