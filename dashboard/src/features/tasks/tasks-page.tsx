import { Plus } from "lucide-react";
import { useState } from "react";
import type { Task } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Page } from "@/components/ui/page";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { ProgressBar } from "@/components/ui/progress";
import { StatusLabel, toneOf } from "@/components/ui/status";
import { type Column, Table } from "@/components/ui/table";
import { useNow } from "@/hooks/now";
import { formatAge, formatDuration, formatPercent, UNKNOWN } from "@/lib/format";
import { useCluster } from "@/stores/cluster";
import { CreateDialog } from "./create-dialog";
import { ResumeDialog } from "./resume-dialog";
import { StopDialog } from "./stop-dialog";
import { canResume, canStop, elapsed } from "./task-facts";
import { TaskPage } from "./task-page";

function columns(now: number, onAsk: (task: Task) => void): Column<Task>[] {
  return [
    {
      key: "name",
      title: "Task",
      cell: (row) => (
        <PageLink page="tasks" id={row.id} className="font-medium text-accent hover:underline">
          {row.name}
        </PageLink>
      ),
    },
    { key: "id", title: "Id", from: "lg", cell: (row) => <span className="font-mono text-muted">{row.id}</span> },
    { key: "status", title: "Status", cell: (row) => <StatusLabel status={row.status} /> },
    {
      key: "progress",
      title: "Progress",
      cell: (row) => (
        <span className="flex items-center gap-2">
          <ProgressBar
            value={row.progress}
            label={`Progress of ${row.name}`}
            tone={toneOf(row.status)}
            className="w-24 max-sm:w-12"
          />
          <span className="font-mono">{formatPercent(row.progress)}</span>
        </span>
      ),
    },
    {
      key: "workers",
      title: "Workers",
      right: true,
      from: "sm",
      cell: (row) => row.worker_ids.length || (row.worker_count ?? UNKNOWN),
    },
    { key: "dataset", title: "Dataset", from: "md", cell: (row) => row.dataset_id ?? UNKNOWN },
    { key: "attempt", title: "Attempt", right: true, from: "md", cell: (row) => row.attempt ?? UNKNOWN },
    {
      key: "started",
      title: "Started",
      right: true,
      from: "md",
      cell: (row) => formatAge(row.started_at_ms, now),
    },
    { key: "took", title: "Time", right: true, from: "sm", cell: (row) => formatDuration(elapsed(row, now)) },
    {
      key: "reason",
      title: "Reason",
      from: "xl",
      className: "w-full max-w-0 truncate",
      cell: (row) => <span title={row.reason ?? ""}>{row.reason ?? ""}</span>,
    },
    {
      key: "stop",
      title: "",
      right: true,
      cell: (row) => {
        const verb = canStop(row) ? "Stop" : canResume(row) ? "Resume" : null;
        const needs = verb === "Stop" ? "POST /tasks/{task_id}/stop" : "POST /tasks/{task_id}/resume";
        return (
          verb && (
            <Button needs={needs} look="quiet" aria-label={`${verb} ${row.name}`} onClick={() => onAsk(row)}>
              {verb}
            </Button>
          )
        );
      },
    },
  ];
}

export default function TasksPage({ id }: { id: string | null }) {
  const now = useNow(1000);
  const { tasks, loaded } = useCluster();
  const [creating, setCreating] = useState(false);
  const [asked, setAsked] = useState<Task | null>(null);
  if (id !== null) return <TaskPage id={id} />;
  const sorted = [...tasks].sort(
    (a, b) => Number(canStop(b)) - Number(canStop(a)) || (b.started_at ?? 0) - (a.started_at ?? 0),
  );
  const create = (
    <Button needs="POST /tasks" look="primary" onClick={() => setCreating(true)}>
      <Plus size={14} /> New task
    </Button>
  );
  return (
    <Page title="Tasks" actions={create}>
      {!loaded ? (
        <Skeleton rows={6} />
      ) : (
        <Panel flush>
          {tasks.length === 0 ? (
            <Empty title="No task yet">
              Submit one here, or run <code className="font-mono">strata run --workers 4 train.py</code>.
            </Empty>
          ) : (
            <Table label="Tasks" rows={sorted} columns={columns(now, setAsked)} rowKey={(row) => row.id} />
          )}
        </Panel>
      )}
      {creating && <CreateDialog onClose={() => setCreating(false)} />}
      {asked && canStop(asked) && <StopDialog task={asked} onClose={() => setAsked(null)} />}
      {asked && canResume(asked) && <ResumeDialog task={asked} onClose={() => setAsked(null)} />}
    </Page>
  );
}
