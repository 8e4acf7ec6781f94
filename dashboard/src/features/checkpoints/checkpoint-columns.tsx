import { GitFork, Pin } from "lucide-react";
import { useState } from "react";
import type { Checkpoint } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { describe } from "@/components/ui/confirm";
import { PageLink } from "@/components/ui/page-link";
import { StatusLabel, Tag } from "@/components/ui/status";
import type { Column } from "@/components/ui/table";
import { requests } from "@/data/source";
import { explain, isGood, verdictOf } from "@/lib/checkpoints";
import { formatAge, formatBytes, formatCount, formatDateTime, formatDuration, formatRate, UNKNOWN } from "@/lib/format";
import { openFork, toast } from "@/stores/overlay";
import { useMay } from "@/stores/rights";

/** A pin is an object in the checkpoint's store; the state comes back on the stream once it is durable there. */
function KeepButton({ row }: { row: Checkpoint }) {
  const [busy, setBusy] = useState(false);
  const may = useMay("POST /checkpoints/{checkpoint_id}/pin");
  const pinned = row.pinned ?? false;
  const step = formatCount(row.step);
  const pin = async () => {
    setBusy(true);
    try {
      await requests().pinCheckpoint(row.id, !pinned);
      toast(pinned ? `Retention decides on step ${step} again.` : `Step ${step} is kept until you unpin it.`, "ok");
    } catch (cause) {
      toast(describe(cause), "bad");
    } finally {
      setBusy(false);
    }
  };
  if (!may) return pinned && <Kept />;
  return (
    <Button
      look="quiet"
      disabled={busy}
      aria-pressed={pinned}
      aria-label={`Keep step ${row.step}`}
      title={
        pinned ? "Kept, whatever retention says. Click to let retention decide." : "Keep it, whatever retention says"
      }
      className={pinned ? "-ml-2 text-accent!" : "-ml-2"}
      onClick={pin}
    >
      <Pin size={13} fill={pinned ? "currentColor" : "none"} />
      <span className="max-sm:sr-only">keep</span>
    </Button>
  );
}

/** For those who cannot change it. */
function Kept() {
  return (
    <span title="Kept, whatever retention says" className="inline-flex items-center gap-1.5 text-accent">
      <Pin size={13} fill="currentColor" aria-hidden="true" /> kept
    </span>
  );
}

function ForkButton({ task, row }: { task: string; row: Checkpoint }) {
  return (
    <Button
      look="quiet"
      className="-ml-2"
      aria-label={`Fork from step ${row.step}`}
      title="A new task from this checkpoint"
      onClick={() => openFork({ task_id: task, step: row.step, checkpoint_id: row.id })}
    >
      <GitFork size={13} />
      <span className="max-sm:sr-only">fork</span>
    </Button>
  );
}

/** The end of a path says which checkpoint it is; the rest is the same for all and stands in the title. */
function tail(path: string): string {
  const parts = path.split("/");
  return parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : path;
}

const FORK: Column<Checkpoint> = {
  key: "fork",
  title: "Fork",
  cell: (row) => isGood(row) && row.task_id && <ForkButton task={row.task_id} row={row} />,
};

export function checkpointColumns(now: number, mayFork: boolean): Column<Checkpoint>[] {
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
        <span title={explain(row)} className="flex items-center gap-2">
          <StatusLabel status={row.status} />
          {row.verified !== null && <Tag tone={row.verified ? "ok" : "bad"}>{verdictOf(row)}</Tag>}
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
      cell: (row) => formatRate(row.throughput),
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
        const at = row.created_at_ms;
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
          {tail(row.path)}
        </span>
      ),
    },
    {
      key: "pin",
      title: "Keep",
      cell: (row) => row.status === "completed" && <KeepButton row={row} />,
    },
    ...(mayFork ? [FORK] : []),
  ];
}
