import { Anchor, Eye, EyeOff, NotebookPen, Trash2 } from "lucide-react";
import type { RunInfo } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { PageLink } from "@/components/ui/page-link";
import { RunSwatch } from "@/components/ui/run-swatch";
import { StatusLabel } from "@/components/ui/status";
import type { Column } from "@/components/ui/table";
import { TagList } from "@/components/ui/tag-list";
import { columnTitle } from "@/lib/column-title";
import { formatAge, formatCompact, formatCount, formatDateTime, formatDuration, formatValue } from "@/lib/format";
import { stateText } from "@/lib/runs";
import { toggleRun } from "@/stores/catalog";
import { useView } from "@/stores/view";
import { RenameButton, RenameField } from "./rename";
import { differenceText, type RunRow } from "./run-rows";

interface Options {
  now: number;
  shown: readonly string[];
  /** The chosen ones, by their names on the server. */
  columns: readonly string[];
  /** null: what is done to the selected ones is not for this caller. */
  selected: ReadonlySet<string> | null;
  /** The run whose name is being typed. */
  renaming: string | null;
  onSelect(run: string): void;
  onRename(run: string | null): void;
  onEdit(run: RunInfo): void;
  onDelete(run: RunInfo): void;
  /** The values of the baseline in the chosen columns; null without one. */
  baseline: { run: string; values: Readonly<Record<string, unknown>> } | null;
  /** Whether any of them belongs to a task. */
  ofTasks: boolean;
}

/** Keys are what the server sorts by. */
export function runColumns(options: Options): Column<RunRow>[] {
  return [
    nameColumn(options),
    {
      key: "state",
      title: "Status",
      cell: ({ run }) => (
        <span title={stateText(run)}>
          <StatusLabel status={run.state} />
        </span>
      ),
    },
    { key: "group", title: "Group", from: "lg", cell: ({ run }) => <GroupCell run={run} /> },
    {
      key: "started",
      title: "Started",
      right: true,
      from: "sm",
      cell: ({ start }) => <time title={formatDateTime(start)}>{formatAge(start, options.now)}</time>,
    },
    { key: "duration", title: "Time", right: true, from: "md", cell: ({ seconds }) => formatDuration(seconds) },
    { key: "step", title: "Step", right: true, cell: ({ run }) => formatCount(run.latest_step) },
    ...options.columns.map(
      (name): Column<RunRow> => ({
        key: name,
        title: columnTitle(name),
        right: true,
        from: "sm",
        cell: ({ run, values }) => (
          <span className="inline-flex items-baseline gap-1.5">
            <ValueCell value={values[name]} />
            {options.baseline && run.run_id !== options.baseline.run && (
              <Difference value={values[name]} from={options.baseline.values[name]} />
            )}
          </span>
        ),
      }),
    ),
    { key: "points", title: "Points", right: true, from: "lg", cell: ({ run }) => formatCompact(run.num_points) },
    ...(options.ofTasks ? [TASK] : []),
    {
      key: "actions",
      title: "",
      right: true,
      cell: ({ run, name }) => (
        <span className="inline-flex">
          <Button
            look="quiet"
            icon
            aria-label={`${name} is the baseline`}
            aria-pressed={options.baseline?.run === run.run_id}
            title="Baseline: on every chart, and what the others are compared with"
            className={options.baseline?.run === run.run_id ? "text-accent!" : ""}
            onClick={() => toggleBaseline(run.run_id)}
          >
            <Anchor size={13} />
          </Button>
          <RenameButton name={name} onClick={() => options.onRename(run.run_id)} />
          <Button
            needs="PATCH /runs/{run_id}"
            look="quiet"
            icon
            aria-label={`Notes on ${name}`}
            title="Tags, group and notes"
            onClick={() => options.onEdit(run)}
          >
            <NotebookPen size={13} />
          </Button>
          <Button
            needs="DELETE /runs/{run_id}"
            look="quiet"
            icon
            aria-label={`Delete ${name}`}
            title="Delete"
            onClick={() => options.onDelete(run)}
          >
            <Trash2 size={13} />
          </Button>
        </span>
      ),
    },
  ];
}

const TASK: Column<RunRow> = {
  key: "task",
  title: "Task",
  sort: false,
  from: "xl",
  cell: ({ run }) =>
    run.task_id ? (
      <PageLink page="tasks" id={run.task_id} className="font-mono text-muted hover:underline">
        {run.task_id}
      </PageLink>
    ) : (
      "–"
    ),
};

function nameColumn({ shown, selected, renaming, onSelect, onRename }: Options): Column<RunRow> {
  return {
    key: "name",
    title: "Run",
    cell: ({ run, name }) => (
      <span className="flex items-center gap-2.5">
        {selected && (
          <input
            type="checkbox"
            aria-label={`Select ${name}`}
            checked={selected.has(run.run_id)}
            onChange={() => onSelect(run.run_id)}
          />
        )}
        <ChartToggle name={name} on={shown.includes(run.run_id)} onChange={() => toggleRun(run.run_id)} />
        <RunSwatch run={run.run_id} />
        {renaming === run.run_id ? (
          <RenameField run={run} onClose={() => onRename(null)} />
        ) : (
          <span>
            <PageLink
              page="runs"
              id={run.run_id}
              title={name === run.run_id ? name : `${name} (${run.run_id})`}
              className="inline-block max-w-80 truncate align-bottom font-medium text-accent hover:underline max-sm:max-w-40"
            >
              {name}
            </PageLink>
            {run.archived && <span className="ml-1.5 text-2xs text-faint">archived</span>}
            {run.tags.length > 0 && (
              <span className="ml-1.5 max-sm:ml-0 max-sm:block">
                <TagList tags={run.tags} onPick={(tag) => narrow(`tag:${quoted(tag)}`)} />
              </span>
            )}
            {run.notes && (
              <span title={run.notes} className="block max-w-56 truncate text-2xs text-muted max-sm:max-w-40">
                {run.notes}
              </span>
            )}
          </span>
        )}
      </span>
    ),
  };
}

/** A checkbox that looks like an eye: selecting and charting are two things. */
function ChartToggle({ name, on, onChange }: { name: string; on: boolean; onChange(): void }) {
  const Icon = on ? Eye : EyeOff;
  return (
    <label title={on ? "On show in charts" : "Not on show in charts"} className="cursor-pointer">
      <input
        type="checkbox"
        aria-label={`Show ${name} in charts`}
        checked={on}
        onChange={onChange}
        className="peer absolute size-4 opacity-0"
      />
      <Icon
        size={14}
        aria-hidden="true"
        className={
          on ? "text-muted peer-focus-visible:text-accent" : "text-faint opacity-60 peer-focus-visible:text-accent"
        }
      />
    </label>
  );
}

function GroupCell({ run }: { run: RunInfo }) {
  if (!run.group) return "–";
  return (
    <button
      type="button"
      title={`Only runs of group ${run.group}`}
      className="max-w-40 truncate hover:underline"
      onClick={() => narrow(`group:${quoted(run.group ?? "")}`)}
    >
      {run.group}
    </button>
  );
}

function ValueCell({ value }: { value: unknown }) {
  if (typeof value === "number" || value === null || value === undefined) {
    return <span className="font-mono">{formatValue(value ?? null)}</span>;
  }
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return (
    <span title={text} className="inline-block max-w-48 truncate align-bottom font-mono">
      {text}
    </span>
  );
}

function Difference({ value, from }: { value: unknown; from: unknown }) {
  const text = differenceText(value, from);
  return text && <span className="font-mono text-2xs text-muted">{text}</span>;
}

function toggleBaseline(run: string): void {
  const { baseline, set } = useView.getState();
  set({ baseline: baseline === run ? "" : run });
}

/** Adds a condition to the filter. */
function narrow(condition: string): void {
  const { runFilter, set } = useView.getState();
  if (!runFilter.includes(condition)) set({ runFilter: runFilter ? `(${runFilter}) and ${condition}` : condition });
}

function quoted(text: string): string {
  return /^[^\s()<>=!~:"*]+$/.test(text) ? text : `"${text.replace(/(["\\])/g, "\\$1")}"`;
}
