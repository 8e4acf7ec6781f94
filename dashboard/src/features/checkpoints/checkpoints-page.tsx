import { useState } from "react";
import type { Checkpoint } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Select } from "@/components/ui/input";
import { Page } from "@/components/ui/page";
import { Panel } from "@/components/ui/panel";
import { Stat } from "@/components/ui/stat";
import { Table } from "@/components/ui/table";
import { useNow } from "@/hooks/now";
import { formatAge, formatBytes, formatCount, formatDuration, formatRate } from "@/lib/format";
import { useCluster } from "@/stores/cluster";
import { useMay } from "@/stores/rights";
import { checkpointColumns } from "./checkpoint-columns";

const ROWS = 300;

function Summary({ rows, now }: { rows: readonly Checkpoint[]; now: number }) {
  const done = rows.filter((row) => row.status === "completed");
  const newest = done[0];
  const rates = done.flatMap((row) => row.throughput ?? []).sort((a, b) => a - b);
  const saving = rows.find((row) => row.status === "in_progress");
  const kept = done.filter((row) => row.pinned).length;
  const failed = rows.filter((row) => row.status === "failed").length;
  return (
    <Panel>
      <div className="grid grid-cols-5 gap-4 max-md:grid-cols-2">
        <Stat
          label="Newest"
          value={formatAge(newest?.created_at_ms, now)}
          note={newest ? `step ${formatCount(newest.step)}` : "none yet"}
        />
        <Stat
          label="In progress"
          value={saving ? `step ${formatCount(saving.step)}` : "none"}
          note={saving ? `for ${formatDuration((now - (saving.created_at_ms ?? now)) / 1000)}` : undefined}
        />
        <Stat label="On disk" value={done.length} note={`${kept} kept by hand, ${failed} failed`} />
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
  const mayFork = useMay("POST /tasks/{task_id}/fork");
  const [task, setTask] = useState("");
  const [withRemoved, setWithRemoved] = useState(false);
  const ids = [...new Set(checkpoints.flatMap((row) => row.task_id ?? []))];
  const mine = checkpoints
    .filter((row) => !task || row.task_id === task)
    .sort((a, b) => (b.created_at_ms ?? 0) - (a.created_at_ms ?? 0));
  const removed = mine.filter((row) => row.status === "removed").length;
  const rows = mine.filter((row) => withRemoved || row.status !== "removed");
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
      ) : mine.length === 0 ? (
        <Panel>
          <Empty title="No checkpoint yet">
            The first <code className="font-mono">ckpt.save(state, step=…)</code> of a worker appears here while it is
            being written.
          </Empty>
        </Panel>
      ) : (
        <>
          <Summary rows={mine} now={now} />
          <Panel
            flush
            title="History"
            note={rows.length > ROWS ? `the newest ${ROWS} of ${formatCount(rows.length)}` : undefined}
            actions={
              removed > 0 && (
                <Button look="quiet" aria-pressed={withRemoved} onClick={() => setWithRemoved(!withRemoved)}>
                  {withRemoved ? "Hide removed" : `Show ${formatCount(removed)} removed`}
                </Button>
              )
            }
          >
            <Table
              label="Checkpoints"
              rows={rows.slice(0, ROWS)}
              columns={checkpointColumns(now, mayFork)}
              rowKey={(row) => row.id}
              rowClass={(row) => (row.status === "removed" ? "text-muted" : undefined)}
            />
          </Panel>
        </>
      )}
    </Page>
  );
}
