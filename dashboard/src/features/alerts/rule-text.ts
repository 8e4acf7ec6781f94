/** Rules and what became of their alerts, in the words of the page. */
import type { Delivery, RuleInfo } from "@/api/wire";
import { formatAge, formatDuration, formatValue } from "@/lib/format";

/** What must be so, and of which runs. */
export function ruleText(rule: RuleInfo): string {
  const lasting = rule.for_s > 0 ? ` for ${formatDuration(rule.for_s)}` : "";
  const runs = rule.filter ? `runs that match ${rule.filter}` : "every run that goes on";
  return `${condition(rule, lasting)}, of ${runs}`;
}

function condition(rule: RuleInfo, lasting: string): string {
  switch (rule.kind) {
    case "threshold":
      return `${rule.metric} is ${rule.comparison} ${formatValue(rule.value)}${lasting}`;
    case "bad_value":
      return `${rule.metric} was NaN or Inf`;
    case "divergence": {
      const baseline = rule.baseline ? `run ${rule.baseline} at the same step` : formatValue(rule.value);
      return `${rule.metric} is more than ${formatValue(rule.tolerance_percent)} % ${rule.comparison} ${baseline}${lasting}`;
    }
    case "no_progress":
      return `nothing was logged${lasting}`;
    case "checkpoint_age":
      return `the newest checkpoint is older than ${formatDuration(rule.for_s)}`;
  }
}

const DELIVERED: Record<Delivery["state"], string> = {
  waiting: "on its way",
  sent: "sent",
  failed: "not sent",
  quieted: "held back by quiet hours",
  dropped: "dropped",
};

export function deliveryText(delivery: Delivery, now: number): string {
  const told = `${delivery.target}: ${DELIVERED[delivery.state]} ${formatAge(delivery.at_ms, now)}`;
  return delivery.problem ? `${told}, ${delivery.problem}` : told;
}
