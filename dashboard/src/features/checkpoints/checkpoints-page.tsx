import { Pin, PinOff } from "lucide-react";
import { useState } from "react";
import type { Checkpoint } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { describe } from "@/components/ui/confirm";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Select } from "@/components/ui/input";
import { Page } from "@/components/ui/page";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { Stat } from "@/components/ui/stat";
import { StatusLabel, Tag } from "@/components/ui/status";
import { type Column, Table } from "@/components/ui/table";
import { requests } from "@/data/source";
import { useNow } from "@/hooks/now";
import {
  formatAge,
  formatBytes,
  formatCount,
  formatDateTime,
  formatDuration,
  formatValue,
  toMs,
  UNKNOWN,
} from "@/lib/format";
import { useCluster } from "@/stores/cluster";
import { toast } from "@/stores/overlay";

const ROWS = 300;

async function pin(row: Checkpoint): Promise<void> {
  try {
    await requests().pinCheckpoint(row.id, !row.pinned);
    toast(row.pinned ? `Step ${row.step} may be deleted again.` : `Step ${row.step} is kept until you unpin it.`, "ok");
  } catch (cause) {
    toast(describe(cause), "bad");
  }
}

function columns(now: number): Column<Checkpoint>[] {
  return [
    {
      key: "step",
      title: "Step",
      right: true,
      cell: (row) => <span className="font-medium">{formatCount(row.step)}</span>,
    },
    { key: "epoch", title: "Epoch", right: true, from: "lg", cell: (row) => formatCount(row.epoch) },
    {
      key: "status",
      title: "Status",
      cell: (row) => (
        <span title={row.reason ?? ""} className="flex items-center gap-2">
          <StatusLabel status={row.status} />
          {row.verified && <Tag tone="ok">verified</Tag>}
          {row.verified === false && row.status !== "failed" && <Tag tone="bad">corrupt</Tag>}
        </span>
      ),
    },
    { key: "size", title: "Size", right: true, cell: (row) => formatBytes(row.size) },
    { key: "save", title: "Save", right: true, from: "sm", cell: (row) => formatDuration(row.duration_s) },
    {
      key: "rate",
      title: "MB/s",
      right: true,
      from: "sm",
      cell: (row) => (row.throughput ? formatValue(Math.round(row.throughput)) : UNKNOWN),
    },
    {
      key: "worker",
      title: "Worker",
      from: "md",
      cell: (row) =>
        row.worker_id ? (
          <PageLink page="cluster" id={row.worker_id} className="text-accent hover:underline">
            {row.worker_id}
          </PageLink>
        ) : (
          UNKNOWN
        ),
    },
    {
      key: "created",
      title: "Created",
      right: true,
      cell: (row) => {
        const at = toMs(row.created_at, row.created_at_ms);
        return <time title={formatDateTime(at)}>{formatAge(at, now)}</time>;
      },
    },
    {
      key: "path",
      title: "Path",
      from: "lg",
      className: "w-full max-w-0 truncate",
      cell: (row) => (
        <span title={row.path} className="font-mono text-muted">
          {row.path}
        </span>
      ),
    },
    {
      key: "pin",
      title: "Keep",
      cell: (row) => (
        <Button
          look="quiet"
          icon
          aria-pressed={row.pinned ?? false}
          aria-label={`${row.pinned ? "Unpin" : "Pin"} step ${row.step}`}
          className={row.pinned ? "text-accent!" : ""}
          onClick={() => pin(row)}
        >
          {row.pinned ? <PinOff size={13} /> : <Pin size={13} />}
        </Button>
      ),
    },
  ];
}

function Summary({ rows, now }: { rows: readonly Checkpoint[]; now: number }) {
  const done = rows.filter((row) => row.status === "completed");
  const newest = done[0];
  const rates = done.flatMap((row) => row.throughput ?? []).sort((a, b) => a - b);
  const saving = rows.find((row) => row.status === "in_progress");
  const failed = rows.filter((row) => row.status === "failed").length;
  return (
    <Panel>
      <div className="grid grid-cols-5 gap-4 max-md:grid-cols-2">
        <Stat
          label="Newest"
          value={formatAge(toMs(newest?.created_at, newest?.created_at_ms), now)}
          note={newest ? `step ${formatCount(newest.step)}` : "none yet"}
        />
        <Stat
          label="In progress"
          value={saving ? `step ${formatCount(saving.step)}` : "none"}
          note={
            saving
              ? `for ${formatDuration((now - (toMs(saving.created_at, saving.created_at_ms) ?? now)) / 1000)}`
              : undefined
          }
        />
        <Stat label="Completed" value={done.length} note={`${failed} failed`} />
        <Stat
          label="Median speed"
          value={formatValue(rates.length ? Math.round(rates[rates.length >> 1] ?? 0) : null)}
          unit="MB/s"
        />
        <Stat
          label="Listed size"
          value={formatBytes(done.reduce((sum, row) => sum + (row.size ?? 0), 0))}
          note="completed ones"
        />
      </div>
    </Panel>
  );
}

export default function CheckpointsPage() {
  const now = useNow(1000);
  const { checkpoints, tasks, loaded } = useCluster();
  const [task, setTask] = useState("");
  const ids = [...new Set(checkpoints.flatMap((row) => row.task_id ?? []))];
  const rows = checkpoints
    .filter((row) => !task || row.task_id === task)
    .sort((a, b) => (b.created_at ?? 0) - (a.created_at ?? 0));
  const filter = (
    <Select aria-label="Task" value={task} onChange={(event) => setTask(event.target.value)}>
      <option value="">all tasks</option>
      {ids.map((id) => (
        <option key={id} value={id}>
          {tasks.find((one) => one.id === id)?.name ?? id}
        </option>
      ))}
    </Select>
  );
  return (
    <Page title="Checkpoints" actions={ids.length > 1 ? filter : undefined}>
      {!loaded ? (
        <Skeleton rows={8} />
      ) : rows.length === 0 ? (
        <Panel>
          <Empty title="No checkpoint yet">
            The first <code className="font-mono">ckpt.save(state, step=…)</code> of a worker appears here while it is
            being written.
          </Empty>
        </Panel>
      ) : (
        <>
          <Summary rows={rows} now={now} />
          <Panel flush>
            <Table label="Checkpoints" rows={rows.slice(0, ROWS)} columns={columns(now)} rowKey={(row) => row.id} />
          </Panel>
        </>
      )}
    </Page>
  );
}
