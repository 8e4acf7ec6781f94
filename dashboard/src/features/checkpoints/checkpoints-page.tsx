import { useState } from "react";
import type { Checkpoint } from "@/api/wire";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Select } from "@/components/ui/input";
import { Page } from "@/components/ui/page";
import { Panel } from "@/components/ui/panel";
import { Stat } from "@/components/ui/stat";
import { Table } from "@/components/ui/table";
import { useNow } from "@/hooks/now";
import { formatAge, formatBytes, formatCount, formatDuration, formatRate, toMs } from "@/lib/format";
import { useCluster } from "@/stores/cluster";
import { checkpointColumns } from "./checkpoint-columns";

const ROWS = 300;

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
        <Stat label="Median speed" value={formatRate(rates[rates.length >> 1])} unit="MB/s" />
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
            <Table
              label="Checkpoints"
              rows={rows.slice(0, ROWS)}
              columns={checkpointColumns(now)}
              rowKey={(row) => row.id}
            />
          </Panel>
        </>
      )}
    </Page>
  );
}
