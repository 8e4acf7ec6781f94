import { useMemo, useState } from "react";
import { useLocation } from "wouter";
import type { RunInfo } from "@/api/wire";
import { Media } from "@/components/media/media";
import { MetricCard } from "@/components/metric/metric-card";
import { AlertList } from "@/components/ui/alert-list";
import { Button } from "@/components/ui/button";
import { describe } from "@/components/ui/confirm";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Facts } from "@/components/ui/facts";
import { Page } from "@/components/ui/page";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { StatusLabel } from "@/components/ui/status";
import { TagList } from "@/components/ui/tag-list";
import { useMetricNames } from "@/hooks/metric-names";
import { useNow } from "@/hooks/now";
import { formatCount, formatDateTime, formatDuration, UNKNOWN } from "@/lib/format";
import { headlines } from "@/lib/metric-tabs";
import { pathOf } from "@/lib/routes";
import { useAlerts } from "@/stores/alerts";
import { displayName, useCatalog } from "@/stores/catalog";
import { toast } from "@/stores/overlay";
import { addressOf } from "@/stores/view";
import { ConfigDiff } from "./config-diff";
import { DeleteDialog } from "./delete-dialog";
import { LabelsDialog } from "./labels-dialog";
import { RenameButton, RenameField } from "./rename";
import { saveRun } from "./run-actions";
import { timesOf } from "./run-rows";
import { SummaryPanel } from "./summary-panel";

const CHARTS = 6;
const LINK = "text-xs font-medium text-accent hover:underline";

async function archive(run: RunInfo): Promise<void> {
  try {
    await saveRun(run.run_id, { archived: !run.archived });
    toast(run.archived ? "The run is back in the list." : "Archived: it is kept and leaves the list.", "ok");
  } catch (cause) {
    toast(describe(cause), "bad");
  }
}

export function RunPage({ id }: { id: string }) {
  const now = useNow(2000);
  const { runs, whole } = useCatalog();
  const only = useMemo(() => [id], [id]);
  const names = useMetricNames(only);
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
        {whole ? (
          <Empty title="No such run">Nothing was logged under {id}, or it was deleted.</Empty>
        ) : (
          <Skeleton rows={8} />
        )}
      </Page>
    );
  }
  const { start, seconds } = timesOf(run, now);
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
          <Button needs="PATCH /runs/{run_id}" onClick={() => setAsking("notes")}>
            Tags and notes
          </Button>
          <Button needs="PATCH /runs/{run_id}" onClick={() => void archive(run)}>
            {run.archived ? "Restore" : "Archive"}
          </Button>
          <Button needs="DELETE /runs/{run_id}" onClick={() => setAsking("delete")}>
            Delete
          </Button>
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
              ["Started", formatDateTime(start)],
              ["Time", formatDuration(seconds)],
              ["Step", formatCount(run.latest_step)],
              ["Series", `${formatCount(run.num_series)} series, ${formatCount(run.num_points)} points`],
              ...(run.project ? [["Project", run.project] as const] : []),
              ...(run.group ? [["Group", run.group] as const] : []),
              ...(run.job_type ? [["Job type", run.job_type] as const] : []),
              ...(run.tags.length > 0 ? [["Tags", <TagList key="g" tags={run.tags} />] as const] : []),
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
      <Media runs={only} quiet />
      <SummaryPanel run={id} />
      <ConfigDiff runs={[run]} />
      {asking === "notes" && <LabelsDialog run={run} onClose={close} />}
      {asking === "delete" && (
        <DeleteDialog run={run} onClose={close} onDeleted={() => navigate(addressOf(pathOf("runs")))} />
      )}
    </Page>
  );
}
