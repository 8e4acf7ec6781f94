import { useState } from "react";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Input } from "@/components/ui/input";
import { Panel } from "@/components/ui/panel";
import { Table } from "@/components/ui/table";
import { WorkerGrid } from "@/components/ui/worker-grid";
import { useNow } from "@/hooks/now";
import { formatCount } from "@/lib/format";
import { countText } from "@/lib/workers";
import { useCluster } from "@/stores/cluster";
import { FleetView } from "./fleet-view";
import { workerColumns } from "./worker-columns";

/** A table refreshed each second stays light; the filter reaches everybody. */
const ROWS = 200;

export function WorkersTab() {
  const [filter, setFilter] = useState("");
  const now = useNow(1000);
  const { workers, fleet, loaded } = useCluster();
  if (!loaded) return <Skeleton rows={8} />;
  if (fleet.folded) return <FleetView fleet={fleet} />;
  if (workers.length === 0) {
    return (
      <Panel>
        <Empty title="No worker has joined">
          Workers appear when a task starts, or when a script calls{" "}
          <code className="font-mono">orch.register_worker(…)</code>.
        </Empty>
      </Panel>
    );
  }
  const needle = filter.toLowerCase();
  const found = workers.filter((one) =>
    `${one.id} ${one.host ?? ""} ${one.status} ${one.current_task ?? ""}`.toLowerCase().includes(needle),
  );
  const note = found.length > ROWS ? `the first ${ROWS} of ${formatCount(found.length)}` : countText(workers);
  return (
    <>
      <Panel title="Fleet" note="height of the fill is GPU or CPU use">
        <WorkerGrid workers={workers} />
      </Panel>
      <Panel
        title="Workers"
        note={note}
        flush
        actions={
          <Input
            type="search"
            aria-label="Filter workers"
            placeholder="Filter by id, host, status, task"
            value={filter}
            onChange={(event) => setFilter(event.target.value)}
            className="w-56"
          />
        }
      >
        <Table label="Workers" rows={found.slice(0, ROWS)} columns={workerColumns(now)} rowKey={(row) => row.id} />
      </Panel>
    </>
  );
}
