import { NotebookPen, Trash2 } from "lucide-react";
import type { RunInfo } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { PageLink } from "@/components/ui/page-link";
import { RunSwatch } from "@/components/ui/run-swatch";
import { StatusLabel } from "@/components/ui/status";
import type { Column } from "@/components/ui/table";
import { formatAge, formatCompact, formatCount, formatDateTime, formatDuration, formatValue } from "@/lib/format";
import { stateText } from "@/lib/runs";
import { toggleRun } from "@/stores/catalog";
import { RenameButton, RenameField } from "./rename";
import type { RunRow } from "./run-rows";

interface Options {
  now: number;
  shown: readonly string[];
  /** The run whose name is being typed. */
  renaming: string | null;
  onRename(run: string | null): void;
  onNotes(run: RunInfo): void;
  onDelete(run: RunInfo): void;
}

export function runColumns({ now, shown, renaming, onRename, onNotes, onDelete }: Options): Column<RunRow>[] {
  return [
    {
      key: "name",
      title: "Run",
      cell: ({ run, name }) => (
        <span className="flex items-center gap-2.5">
          <input
            type="checkbox"
            aria-label={`Show ${name} in charts`}
            checked={shown.includes(run.run_id)}
            onChange={() => toggleRun(run.run_id)}
          />
          <RunSwatch run={run.run_id} />
          {renaming === run.run_id ? (
            <RenameField run={run} onClose={() => onRename(null)} />
          ) : (
            <span className="min-w-0">
              <PageLink
                page="runs"
                id={run.run_id}
                title={run.run_id}
                className="font-medium text-accent hover:underline"
              >
                {name}
              </PageLink>
              {run.notes && (
                <span title={run.notes} className="block max-w-72 truncate text-2xs text-muted max-sm:max-w-40">
                  {run.notes}
                </span>
              )}
            </span>
          )}
        </span>
      ),
    },
    {
      key: "status",
      title: "Status",
      cell: ({ run }) => (
        <span title={stateText(run)}>
          <StatusLabel status={run.state} />
        </span>
      ),
    },
    {
      key: "start",
      title: "Started",
      right: true,
      from: "sm",
      cell: ({ start }) => <time title={formatDateTime(start)}>{formatAge(start, now)}</time>,
    },
    { key: "seconds", title: "Time", right: true, from: "md", cell: ({ seconds }) => formatDuration(seconds) },
    { key: "step", title: "Step", right: true, cell: ({ run }) => formatCount(run.latest_step) },
    {
      key: "last",
      title: "Loss, last",
      right: true,
      from: "md",
      cell: ({ last }) => <span className="font-mono">{formatValue(last)}</span>,
    },
    {
      key: "best",
      title: "Loss, best",
      right: true,
      from: "sm",
      cell: ({ best }) => <span className="font-mono">{formatValue(best)}</span>,
    },
    { key: "points", title: "Points", right: true, from: "lg", cell: ({ run }) => formatCompact(run.num_points) },
    {
      key: "task",
      title: "Task",
      sort: false,
      from: "lg",
      cell: ({ run }) =>
        run.task_id ? (
          <PageLink page="tasks" id={run.task_id} className="font-mono text-muted hover:underline">
            {run.task_id}
          </PageLink>
        ) : (
          "–"
        ),
    },
    {
      key: "actions",
      title: "",
      right: true,
      cell: ({ run, name }) => (
        <span className="inline-flex">
          <RenameButton name={name} onClick={() => onRename(run.run_id)} />
          <Button look="quiet" icon aria-label={`Notes on ${name}`} title="Notes" onClick={() => onNotes(run)}>
            <NotebookPen size={13} />
          </Button>
          <Button look="quiet" icon aria-label={`Delete ${name}`} title="Delete" onClick={() => onDelete(run)}>
            <Trash2 size={13} />
          </Button>
        </span>
      ),
    },
  ];
}
