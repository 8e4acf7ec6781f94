import type { TargetInfo } from "@/api/wire";
import { useNow } from "@/hooks/now";
import { formatAge, formatCount } from "@/lib/format";
import { RowActions } from "./row-actions";
import { TARGET_KINDS } from "./target-form";

interface Props {
  target: TargetInfo;
  onEdit(): void;
  onDelete(): void;
}

export function TargetRow({ target, onEdit, onDelete }: Props) {
  const now = useNow(5000);
  return (
    <li
      aria-label={`Target ${target.name}`}
      className="flex flex-wrap items-start gap-x-3 gap-y-1.5 border-b border-line px-3 py-2.5 text-xs leading-5 last:border-0"
    >
      <div className="min-w-0 flex-1 basis-60">
        <p className="flex flex-wrap gap-x-2.5">
          <span className="font-medium break-all">{target.name}</span>
          <span className="text-muted">{TARGET_KINDS[target.kind]}</span>
          <span className="min-w-0 font-mono break-all text-muted">{target.place}</span>
        </p>
        <p className="break-words text-muted">
          {target.recipients.length > 0 && `To ${target.recipients.join(", ")}. `}
          {target.all_alerts ? "Gets every alert. " : "Gets alerts of rules that name it. "}
          {target.quiet_from && `Quiet from ${target.quiet_from} to ${target.quiet_to} (${target.timezone}). `}
        </p>
        <p className={target.problem ? "break-words text-bad" : "text-muted"}>{delivered(target, now)}</p>
      </div>
      <RowActions kind="target" name={target.name} targets={[target.name]} {...{ onEdit, onDelete }} />
    </li>
  );
}

/** What became of its alerts. */
function delivered(target: TargetInfo, now: number): string {
  const counts = { sent: target.sent, "not sent": target.failed, dropped: target.dropped, "held back": target.quieted };
  const told = Object.entries(counts)
    .filter(([name, count]) => count > 0 || name === "sent")
    .map(([name, count]) => `${formatCount(count)} ${name}`)
    .join(", ");
  const last = target.last_at_ms === null ? "" : `, the last ${formatAge(target.last_at_ms, now)}`;
  return target.problem ? `${told}${last}: ${target.problem}` : `${told}${last}`;
}
