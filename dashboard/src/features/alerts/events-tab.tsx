import { useEffect, useState } from "react";
import type { Severity } from "@/api/wire";
import { AlertList } from "@/components/ui/alert-list";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Select } from "@/components/ui/input";
import { Panel } from "@/components/ui/panel";
import { Segmented } from "@/components/ui/segmented";
import { SetAsidePanel } from "@/components/ui/set-aside";
import { markSeen, useAlerts } from "@/stores/alerts";

const ROWS = 300;
const LEVELS: readonly { value: Severity | "all"; label: string }[] = [
  { value: "all", label: "All" },
  { value: "critical", label: "Critical" },
  { value: "warning", label: "Warning" },
  { value: "info", label: "Info" },
];

export function EventsTab() {
  const { alerts, loaded } = useAlerts();
  const [severity, setSeverity] = useState<Severity | "all">("all");
  const [kind, setKind] = useState("");
  const newest = alerts[0]?.id;
  // Being on this page is reading it, also for what arrives meanwhile.
  useEffect(() => {
    if (newest) markSeen();
  }, [newest]);
  const kinds = [...new Set(alerts.map((alert) => alert.kind))].sort();
  const rows = alerts.filter(
    (alert) => (severity === "all" || alert.severity === severity) && (!kind || alert.kind === kind),
  );
  return (
    <>
      <SetAsidePanel />
      <Panel
        flush
        title={alerts.length === 1 ? "1 event" : `${alerts.length} events`}
        actions={
          <>
            <Segmented<Severity | "all"> label="Severity" value={severity} options={LEVELS} onChange={setSeverity} />
            <Select aria-label="Event kind" value={kind} onChange={(event) => setKind(event.target.value)}>
              <option value="">all kinds</option>
              {kinds.map((one) => (
                <option key={one} value={one}>
                  {one.replaceAll("_", " ")}
                </option>
              ))}
            </Select>
          </>
        }
      >
        {!loaded ? (
          <Skeleton rows={6} />
        ) : rows.length > 0 ? (
          <AlertList alerts={rows.slice(0, ROWS)} />
        ) : (
          <Empty title={alerts.length > 0 ? "No event of this kind" : "Nothing to report"}>
            {alerts.length > 0
              ? "Loosen the filters to see the others."
              : "The server watches for NaN and Inf, exploding loss, stalls, stragglers, late heartbeats and lost workers, with no set-up and no browser open."}
          </Empty>
        )}
      </Panel>
    </>
  );
}
