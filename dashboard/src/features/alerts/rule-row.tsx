import type { RuleInfo } from "@/api/wire";
import { StatusLabel, StatusMark, Tag, toneOf } from "@/components/ui/status";
import { useNow } from "@/hooks/now";
import { formatAge } from "@/lib/format";
import { openAlert } from "@/stores/overlay";
import { RowActions } from "./row-actions";
import { deliveryText, ruleText } from "./rule-text";

interface Props {
  rule: RuleInfo;
  onEdit(): void;
  onDelete(): void;
}

export function RuleRow({ rule, onEdit, onDelete }: Props) {
  const now = useNow(5000);
  const { last_alert: last } = rule;
  return (
    <li
      aria-label={`Rule ${rule.name}`}
      className="flex flex-wrap items-start gap-x-3 gap-y-1.5 border-b border-line px-3 py-2.5 text-xs leading-5 last:border-0"
    >
      <div className="min-w-0 flex-1 basis-60">
        <p className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
          <StatusLabel status={rule.state} />
          <span className="min-w-0 font-medium break-all">{rule.name}</span>
          <Tag tone={toneOf(rule.severity)}>{rule.severity}</Tag>
          {rule.num_firing > 1 && <span className="text-muted">{rule.num_firing} runs</span>}
        </p>
        <p className="break-words text-muted">{ruleText(rule)}</p>
        {last ? (
          <button
            type="button"
            className="max-w-full text-left break-words hover:underline"
            onClick={() => openAlert(last)}
          >
            Last fired {formatAge(last.timestamp_ms, now)}: <span className="text-accent">{last.message}</span>
          </button>
        ) : (
          <p className="text-faint">Has not fired yet.</p>
        )}
        {rule.deliveries.map((delivery) => (
          <p key={delivery.target} className="flex items-baseline gap-1.5 break-words text-muted">
            <StatusMark status={delivery.state} />
            <span className={delivery.problem ? "min-w-0 text-bad" : "min-w-0"}>{deliveryText(delivery, now)}</span>
          </p>
        ))}
        {rule.deliveries.length === 0 && (
          <p className="text-faint">
            {rule.targets.length > 0 ? `Tells ${rule.targets.join(", ")}.` : "Tells nobody: its alerts are shown here."}
          </p>
        )}
      </div>
      <RowActions kind="rule" name={rule.name} targets={rule.targets} {...{ onEdit, onDelete }} />
    </li>
  );
}
