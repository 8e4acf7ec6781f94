import { Trash2 } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Button } from "@/components/ui/button";
import { Input, Select } from "@/components/ui/input";
import { Panel } from "@/components/ui/panel";
import { DEFAULT_RULES } from "@/lib/metric-tabs";
import { METRIC_TABS, type MetricTab } from "@/lib/view-codec";
import { usePrefs } from "@/stores/prefs";

/** Which metric goes to which tab: the user's prefixes first, then the table that ships. */
export function RulesPanel() {
  const rules = usePrefs((prefs) => prefs.rules);
  const [prefix, setPrefix] = useState("");
  const [tab, setTab] = useState<MetricTab>("training");
  const add = (event: FormEvent) => {
    event.preventDefault();
    const clean = prefix.trim();
    if (!clean) return;
    usePrefs.setState({ rules: [...rules.filter((rule) => rule.prefix !== clean), { prefix: clean, tab }] });
    setPrefix("");
  };
  return (
    <Panel title="Metric tabs" note="the longest matching prefix wins; what matches nothing goes to Training">
      <form onSubmit={add} className="mb-3 flex flex-wrap items-center gap-2">
        <Input
          aria-label="Prefix"
          placeholder="prefix, such as eval/"
          value={prefix}
          onChange={(event) => setPrefix(event.target.value)}
          className="font-mono"
        />
        <Select aria-label="Tab" value={tab} onChange={(event) => setTab(event.target.value as MetricTab)}>
          {METRIC_TABS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </Select>
        <Button type="submit">Add rule</Button>
      </form>
      {rules.length > 0 && (
        <ul className="mb-3 flex flex-col gap-1">
          {rules.map((rule) => (
            <li key={rule.prefix} className="flex items-center gap-3 text-xs">
              <code className="min-w-28 font-mono">{rule.prefix}*</code>
              <span>{rule.tab}</span>
              <Button
                look="quiet"
                icon
                aria-label={`Remove rule ${rule.prefix}`}
                onClick={() => usePrefs.setState({ rules: rules.filter((one) => one !== rule) })}
              >
                <Trash2 size={13} />
              </Button>
            </li>
          ))}
        </ul>
      )}
      <dl className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-4 gap-y-1 text-xs">
        {METRIC_TABS.map((one) => (
          <div key={one} className="contents">
            <dt className="text-faint capitalize">{one}</dt>
            <dd className="font-mono text-muted">
              {DEFAULT_RULES.filter((rule) => rule.tab === one)
                .map((rule) => `${rule.prefix}*`)
                .join("  ")}
            </dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
