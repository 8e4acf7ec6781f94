import { useLocation } from "wouter";
import { Page } from "@/components/ui/page";
import { Tabs } from "@/components/ui/tabs";
import { pathOf } from "@/lib/routes";
import { addressOf } from "@/stores/view";
import { EventsTab } from "./events-tab";
import { RulesTab } from "./rules-tab";

const TABS = [
  { value: "events", label: "Events" },
  { value: "rules", label: "Rules" },
] as const;

/** What was found, and what people want to be told of: /ui/alerts and /ui/alerts/rules. */
export default function AlertsPage({ id }: { id: string | null }) {
  const [, navigate] = useLocation();
  const tab = id === "rules" ? "rules" : "events";
  return (
    <Page title="Alerts">
      <Tabs
        label="Alert views"
        value={tab}
        tabs={TABS}
        onChange={(value) => navigate(addressOf(value === "rules" ? pathOf("alerts", "rules") : pathOf("alerts")))}
      />
      <div role="tabpanel" aria-label={tab} className="flex flex-col gap-3">
        {tab === "rules" ? <RulesTab /> : <EventsTab />}
      </div>
    </Page>
  );
}
