import type { Alert } from "@/api/wire";
import { useNow } from "@/hooks/now";
import { cx } from "@/lib/cx";
import { formatAge } from "@/lib/format";
import { openAlert } from "@/stores/overlay";
import { toneOf } from "./status";

const DOTS = {
  bad: "bg-bad",
  warn: "rotate-45 bg-warn",
  accent: "rounded-full bg-accent",
  ok: "rounded-full bg-ok",
  idle: "rounded-full bg-idle",
};

/** Events, newest first; a click opens the trail of what was going on. */
export function AlertList({ alerts }: { alerts: readonly Alert[] }) {
  const now = useNow(5000);
  return (
    <ul>
      {alerts.map((alert) => (
        <li key={alert.id} className="border-b border-line last:border-0">
          <button
            type="button"
            data-alert={alert.kind}
            className="flex w-full gap-2.5 px-3 py-2 text-left text-xs leading-5 hover:bg-hover/60"
            onClick={() => openAlert(alert)}
          >
            <span aria-hidden="true" className={cx("mt-1.5 size-[7px] shrink-0", DOTS[toneOf(alert.severity)])} />
            <span className="min-w-0 flex-1">
              <span className="sr-only">{alert.severity}: </span>
              {alert.message}
              <span className="block text-2xs text-faint">
                {[
                  alert.kind.replaceAll("_", " "),
                  alert.run_id,
                  alert.step === null ? null : `step ${alert.step.toLocaleString("en-US")}`,
                ]
                  .filter(Boolean)
                  .join(" · ")}
              </span>
            </span>
            <time className="shrink-0 text-2xs leading-5 text-faint">{formatAge(alert.timestamp_ms, now)}</time>
          </button>
        </li>
      ))}
    </ul>
  );
}
