import { useMemo, useState } from "react";
import { useLocation } from "wouter";
import { MetricCard } from "@/components/metric/metric-card";
import { AlertList } from "@/components/ui/alert-list";
import { Button } from "@/components/ui/button";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Facts } from "@/components/ui/facts";
import { Page } from "@/components/ui/page";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { StatusLabel } from "@/components/ui/status";
import { useMetricNames } from "@/hooks/metric-names";
import { useNow } from "@/hooks/now";
import { formatCount, formatDateTime, formatDuration, formatValue, UNKNOWN } from "@/lib/format";
import { headlines } from "@/lib/metric-tabs";
import { pathOf } from "@/lib/routes";
import { useAlerts } from "@/stores/alerts";
import { displayName, useCatalog } from "@/stores/catalog";
import { addressOf } from "@/stores/view";
import { ConfigDiff } from "./config-diff";
import { DeleteDialog } from "./delete-dialog";
import { NotesDialog } from "./notes-dialog";
import { RenameButton, RenameField } from "./rename";
import { toRow } from "./run-rows";

const CHARTS = 6;
const LINK = "text-xs font-medium text-accent hover:underline";

export function RunPage({ id }: { id: string }) {
  const now = useNow(2000);
  const { runs, loaded } = useCatalog();
  const names = useMetricNames(useMemo(() => [id], [id]));
  const alerts = useAlerts((state) => state.alerts);
  const [asking, setAsking] = useState<"name" | "notes" | "delete" | null>(null);
  const [, navigate] = useLocation();
  const close = () => setAsking(null);
  const run = runs.find((one) => one.run_id === id);
  const back = (
    <PageLink page="runs" className={LINK}>
      All runs
    </PageLink>
  );
  if (!run) {
    return (
      <Page title={id} actions={back}>
        {loaded ? (
          <Empty title="No such run">Nothing was logged under {id}, or it was deleted.</Empty>
        ) : (
          <Skeleton rows={8} />
        )}
      </Page>
    );
  }
  const row = toRow(run, now);
  const own = headlines(names, CHARTS);
  const mine = alerts.filter((alert) => alert.run_id === id).slice(0, 20);
  return (
    <Page
      title={displayName(run)}
      note={run.name && run.name !== id ? id : undefined}
      actions={
        <>
          {back}
          <PageLink page="metrics" view={{ runs: [id] }} className={LINK}>
            All metrics
          </PageLink>
          {asking === "name" ? (
            <RenameField run={run} onClose={close} />
          ) : (
            <RenameButton name={displayName(run)} onClick={() => setAsking("name")} />
          )}
          <Button onClick={() => setAsking("notes")}>Notes</Button>
          <Button onClick={() => setAsking("delete")}>Delete</Button>
        </>
      }
    >
      {run.notes && <p className="max-w-3xl text-xs leading-5 whitespace-pre-wrap text-muted">{run.notes}</p>}
      <div className="grid grid-cols-2 gap-3 max-md:grid-cols-1">
        <Panel title="State">
          <Facts
            rows={[
              ["Status", <StatusLabel key="s" status={run.state} />],
              ...(run.reason ? [["Reason", run.reason] as const] : []),
              ["Started", formatDateTime(row.start)],
              ["Time", formatDuration(row.seconds)],
              ["Step", formatCount(run.latest_step)],
              ["Loss", `${formatValue(row.last)} last · ${formatValue(row.best)} best`],
              ["Series", `${formatCount(run.num_series)} series, ${formatCount(run.num_points)} points`],
              [
                "Task",
                run.task_id ? (
                  <PageLink key="t" page="tasks" id={run.task_id} className="text-accent hover:underline">
                    {run.task_id}
                  </PageLink>
                ) : (
                  UNKNOWN
                ),
              ],
            ]}
          />
        </Panel>
        <Panel title="Events" flush>
          {mine.length > 0 ? (
            <div className="max-h-56 overflow-y-auto">
              <AlertList alerts={mine} />
            </div>
          ) : (
            <Empty title="Nothing happened to this run" className="py-6" />
          )}
        </Panel>
      </div>
      <div className="grid grid-cols-[repeat(auto-fill,minmax(min(100%,340px),1fr))] gap-3">
        {own.map((name) => (
          <MetricCard key={name} metric={name} height={150} only={{ run: id, rank: null }} />
        ))}
      </div>
      <ConfigDiff runs={[run]} />
      {asking === "notes" && <NotesDialog run={run} onClose={close} />}
      {asking === "delete" && (
        <DeleteDialog run={run} onClose={close} onDeleted={() => navigate(addressOf(pathOf("runs")))} />
      )}
    </Page>
  );
}
