import { useState } from "react";
import type { Dataset } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Page } from "@/components/ui/page";
import { Panel } from "@/components/ui/panel";
import { ProgressBar } from "@/components/ui/progress";
import { type Column, Table } from "@/components/ui/table";
import { cx } from "@/lib/cx";
import { formatCount, formatPercent, UNKNOWN } from "@/lib/format";
import { useCluster } from "@/stores/cluster";
import { useView } from "@/stores/view";
import { PreviewPanel } from "./preview-panel";
import { QueuePanel } from "./queue-panel";
import { RegisterDialog } from "./register-dialog";
import { ShardPanel } from "./shard-panel";

function columns(chosen: string): Column<Dataset>[] {
  return [
    {
      key: "name",
      title: "Dataset",
      cell: (row) => (
        <button
          type="button"
          aria-pressed={row.id === chosen}
          className={cx("text-left hover:underline", row.id === chosen ? "font-semibold" : "font-medium text-accent")}
          onClick={() => useView.getState().set({ dataset: row.id })}
        >
          {row.name ?? row.id}
        </button>
      ),
    },
    { key: "id", title: "Id", from: "md", cell: (row) => <span className="font-mono text-muted">{row.id}</span> },
    { key: "samples", title: "Samples", right: true, cell: (row) => formatCount(row.total_samples) },
    { key: "shards", title: "Shards", right: true, cell: (row) => formatCount(row.shard_count) },
    { key: "format", title: "Format", from: "sm", cell: (row) => row.format },
    {
      key: "order",
      title: "Order",
      from: "lg",
      cell: (row) => (row.shuffle ? `shuffled, seed ${row.seed ?? UNKNOWN}` : "in order"),
    },
    { key: "epoch", title: "Epoch", right: true, from: "sm", cell: (row) => formatCount(row.epoch) },
    {
      key: "progress",
      title: "Read this epoch",
      cell: (row) =>
        row.progress === null ? (
          <span className="text-faint">not being read</span>
        ) : (
          <span className="flex items-center gap-2">
            <ProgressBar value={row.progress} label={`Epoch progress of ${row.id}`} className="w-24 max-sm:w-14" />
            <span className="font-mono">{formatPercent(row.progress)}</span>
          </span>
        ),
    },
    { key: "path", title: "Path", from: "xl", cell: (row) => <span className="font-mono text-muted">{row.path}</span> },
  ];
}

export default function DataPage() {
  const { datasets, loaded } = useCluster();
  const [registering, setRegistering] = useState(false);
  const wanted = useView((view) => view.dataset);
  const chosen =
    datasets.find((one) => one.id === wanted) ?? datasets.find((one) => one.progress !== null) ?? datasets[0];
  const register = (
    <Button needs="POST /datasets" onClick={() => setRegistering(true)}>
      Register dataset
    </Button>
  );
  return (
    <Page title="Data" actions={register}>
      {!loaded ? (
        <Skeleton rows={6} />
      ) : datasets.length === 0 ? (
        <Panel>
          <Empty title="No dataset is registered">
            Register one here, or from Python with{" "}
            <code className="font-mono">DatasetRegistry("localhost:50051").register(…)</code>.
          </Empty>
        </Panel>
      ) : (
        <Panel flush>
          <Table
            label="Datasets"
            rows={datasets}
            columns={columns(chosen?.id ?? "")}
            rowKey={(row) => row.id}
            rowClass={(row) => (row === chosen ? "bg-hover/60" : undefined)}
          />
        </Panel>
      )}
      {chosen?.queues?.map((queue) => (
        <QueuePanel key={`queue-${queue.task_id}`} queue={queue} />
      ))}
      {chosen && <ShardPanel key={`shards-${chosen.id}`} dataset={chosen} />}
      {chosen && <PreviewPanel key={`preview-${chosen.id}`} dataset={chosen} />}
      {registering && <RegisterDialog onClose={() => setRegistering(false)} />}
    </Page>
  );
}
