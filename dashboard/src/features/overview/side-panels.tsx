import { AlertList } from "@/components/ui/alert-list";
import { Empty } from "@/components/ui/empty";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { Stat } from "@/components/ui/stat";
import { useNow } from "@/hooks/now";
import { verdictOf } from "@/lib/checkpoints";
import { formatAge, formatBytes, formatCount, formatDuration, formatRate } from "@/lib/format";
import { useAlerts } from "@/stores/alerts";
import { useCluster } from "@/stores/cluster";

const NEWEST = 5;

const More = ({ page }: { page: "alerts" | "checkpoints" }) => (
  <PageLink page={page} className="text-xs font-medium text-accent hover:underline">
    All
  </PageLink>
);

export function NewestEvents() {
  const { alerts, loaded } = useAlerts();
  return (
    <Panel title="Newest events" actions={<More page="alerts" />} flush>
      {alerts.length > 0 ? (
        <AlertList alerts={alerts.slice(0, NEWEST)} />
      ) : (
        <Empty title={loaded ? "Nothing to report" : "Not known yet"} className="py-6">
          {loaded
            ? "NaN, stalls, stragglers and lost workers are watched for and would show here."
            : "Waiting for the server."}
        </Empty>
      )}
    </Panel>
  );
}

export function LastCheckpoint() {
  const now = useNow(1000);
  const checkpoints = useCluster((state) => state.checkpoints);
  const newest = checkpoints
    .filter((one) => one.status === "completed")
    .reduce<(typeof checkpoints)[number] | null>(
      (best, one) => ((one.created_at ?? 0) > (best?.created_at ?? -1) ? one : best),
      null,
    );
  const training = useCluster((state) => state.tasks.some((task) => task.status === "running"));
  const loaded = useCluster((state) => state.loaded);
  const saving = checkpoints.find((one) => one.status === "in_progress");
  return (
    <Panel
      title="Last checkpoint"
      note={saving ? `saving step ${formatCount(saving.step)}…` : undefined}
      actions={<More page="checkpoints" />}
    >
      {newest ? (
        <div className="grid grid-cols-3 gap-3">
          <Stat label="Age" value={formatAge(newest.created_at_ms, now)} note={`step ${formatCount(newest.step)}`} />
          <Stat label="Size" value={formatBytes(newest.size)} note={verdictOf(newest)} />
          <Stat
            label="Save"
            value={formatDuration(newest.duration_s)}
            note={newest.throughput ? `${formatRate(newest.throughput)} MB/s` : "–"}
          />
        </div>
      ) : (
        <p className="text-xs text-muted">
          {training ? "None yet: a crash now would start from step 0." : loaded ? "None yet." : "Not known yet."}
        </p>
      )}
    </Panel>
  );
}
