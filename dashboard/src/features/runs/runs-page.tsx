import { useEffect, useState } from "react";
import type { RunInfo } from "@/api/wire";
import { Skeleton } from "@/components/ui/empty";
import { Input } from "@/components/ui/input";
import { NoRuns } from "@/components/ui/no-runs";
import { Page } from "@/components/ui/page";
import { Panel } from "@/components/ui/panel";
import { Table } from "@/components/ui/table";
import { outlineLoader } from "@/data/outline-loader";
import { useNow } from "@/hooks/now";
import { useShownRuns } from "@/hooks/runs";
import { formatCount } from "@/lib/format";
import { useCatalog } from "@/stores/catalog";
import { ConfigDiff } from "./config-diff";
import { DeleteDialog } from "./delete-dialog";
import { NotesDialog } from "./notes-dialog";
import { runColumns } from "./run-columns";
import { RunPage } from "./run-page";
import { isSortKey, type SortKey, sortRows, toRow } from "./run-rows";

const ROWS = 300;

export default function RunsPage({ id }: { id: string | null }) {
  return id === null ? <RunTable /> : <RunPage id={id} />;
}

function RunTable() {
  const now = useNow(2000);
  const { runs, loaded } = useCatalog();
  const shown = useShownRuns();
  const [filter, setFilter] = useState("");
  const [sort, setSort] = useState<{ key: SortKey; down: boolean }>({ key: "start", down: true });
  const [renaming, setRenaming] = useState<string | null>(null);
  const [noting, setNoting] = useState<RunInfo | null>(null);
  const [deleting, setDeleting] = useState<RunInfo | null>(null);
  const needle = filter.toLowerCase();
  const found = runs.filter((run) =>
    `${run.run_id} ${run.name ?? ""} ${run.notes ?? ""}`.toLowerCase().includes(needle),
  );
  const rows = sortRows(
    found.map((run) => toRow(run, now)),
    sort.key,
    sort.down,
  ).slice(0, ROWS);
  useEffect(() => outlineLoader.want(rows.map(({ run }) => run.run_id)));
  const onSort = (key: string) => {
    if (isSortKey(key)) setSort((old) => ({ key, down: old.key === key ? !old.down : key !== "name" }));
  };
  return (
    <Page
      title="Runs"
      note={[
        `${formatCount(shown.length)} of ${formatCount(runs.length)} on show`,
        found.length > ROWS && `the first ${ROWS} of ${formatCount(found.length)} are listed`,
      ]
        .filter(Boolean)
        .join(" · ")}
      actions={
        <Input
          type="search"
          aria-label="Filter runs"
          placeholder="Filter runs"
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
          className="w-52"
        />
      }
    >
      {!loaded ? (
        <Skeleton rows={6} />
      ) : runs.length === 0 ? (
        <NoRuns />
      ) : (
        <>
          <Panel flush>
            <Table
              label="Runs"
              rows={rows}
              columns={runColumns({
                now,
                shown,
                renaming,
                onRename: setRenaming,
                onNotes: setNoting,
                onDelete: setDeleting,
              })}
              rowKey={(row) => row.run.run_id}
              sort={sort}
              onSort={onSort}
            />
          </Panel>
          <ConfigDiff runs={runs.filter((run) => shown.includes(run.run_id))} />
        </>
      )}
      {noting && <NotesDialog run={noting} onClose={() => setNoting(null)} />}
      {deleting && <DeleteDialog run={deleting} onClose={() => setDeleting(null)} />}
    </Page>
  );
}
