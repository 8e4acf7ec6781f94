import { type FormEvent, useState } from "react";
import { send } from "@/api/client";
import { Button } from "@/components/ui/button";
import { Facts } from "@/components/ui/facts";
import { Field, Input } from "@/components/ui/input";
import { Page } from "@/components/ui/page";
import { Panel } from "@/components/ui/panel";
import { SetAsidePanel } from "@/components/ui/set-aside";
import { logRing } from "@/data/log-ring";
import { seriesStore } from "@/data/series-store";
import { useNow } from "@/hooks/now";
import { formatBytes, formatCount, formatDateTime, formatDuration, UNKNOWN } from "@/lib/format";
import { upFor, useCluster } from "@/stores/cluster";
import { useLink } from "@/stores/link";
import { useRights } from "@/stores/rights";
import { useTheme } from "@/stores/theme";
import { RulesPanel } from "./rules-panel";

function ServerPanel() {
  const now = useNow(1000);
  const coordinator = useCluster((state) => state.coordinator);
  return (
    <Panel title="Server">
      {coordinator ? (
        <Facts
          rows={[
            ["Coordinator", `${coordinator.address} · ${coordinator.connected ? "connected" : "not reachable"}`],
            ["Version", coordinator.version],
            ["Up for", formatDuration(upFor(coordinator, now))],
            ["Started", formatDateTime(coordinator.started_at_ms)],
            ["Checkpoint storage", coordinator.storage_backend ?? UNKNOWN],
            [
              "Metric store",
              [coordinator.metric_store ?? UNKNOWN, coordinator.metric_store_problem].filter(Boolean).join(": "),
            ],
            ["Waiting to be stored", formatBytes(coordinator.spool_backlog_bytes)],
            ["Points dropped", formatCount(coordinator.dropped_points)],
            ["Points refused, of earlier attempts", formatCount(coordinator.fenced_points)],
            ["Lost to a damaged disk", formatCount(coordinator.spool_damage?.places)],
            ["Generation", formatCount(coordinator.generation)],
          ]}
        />
      ) : (
        <p className="text-xs text-muted">The server has not answered yet.</p>
      )}
    </Panel>
  );
}

function StreamPanel() {
  useNow(1000);
  const { state, detail, lastEventAt } = useLink();
  const who = useRights((rights) => rights.who);
  return (
    <Panel title="This browser">
      <Facts
        rows={[
          ["Stream", `${state}. ${detail}`],
          ["Last event", formatDateTime(lastEventAt)],
          ["To the server it is", who ?? UNKNOWN],
          [
            "Metrics",
            `${formatCount(seriesStore.names().length)} names, ${formatCount(seriesStore.received)} points received since the page was opened`,
          ],
          ["Unknown points", formatCount(seriesStore.orphans)],
          [
            "Log lines",
            `${formatCount(logRing.next - logRing.first)} kept of at most ${formatCount(logRing.capacity)}`,
          ],
        ]}
      />
    </Panel>
  );
}

/** The server answers a right token with a cookie that scripts cannot read. The token is in no address. */
function TokenPanel() {
  const [token, setToken] = useState("");
  const [error, setError] = useState<string>();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!token.trim()) return;
    send("POST", "/session", { token: token.trim() }).then(
      () => location.assign("/"),
      (cause: unknown) => setError(cause instanceof Error ? cause.message : String(cause)),
    );
  };
  return (
    <Panel title="Token">
      <form onSubmit={submit} className="flex flex-wrap items-end gap-2">
        <div className="min-w-48 flex-1">
          <Field
            label="Token"
            hint="The file `token` in the data folder of strata up. Its owner needs none on the same machine."
            error={error}
          >
            {(props) => (
              <Input
                {...props}
                type="password"
                autoComplete="off"
                value={token}
                onChange={(event) => setToken(event.target.value)}
                className="w-full"
              />
            )}
          </Field>
        </div>
        <Button type="submit" className="mb-5">
          Sign in
        </Button>
      </form>
    </Panel>
  );
}

export default function SettingsPage() {
  const { theme, toggle } = useTheme();
  return (
    <Page title="Settings">
      <div className="grid grid-cols-2 gap-3 max-lg:grid-cols-1">
        <ServerPanel />
        <StreamPanel />
        <Panel title="Appearance">
          <div className="flex items-center gap-3 text-xs">
            <Button onClick={toggle}>Switch to {theme === "light" ? "dark" : "light"}</Button>
            <span className="text-muted">
              Kept in this browser. Until you choose, the system's own setting is followed.
            </span>
          </div>
        </Panel>
        <TokenPanel />
      </div>
      <SetAsidePanel />
      <RulesPanel />
    </Page>
  );
}
