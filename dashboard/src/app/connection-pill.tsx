import { useNow } from "@/hooks/now";
import { cx } from "@/lib/cx";
import { formatAge } from "@/lib/format";
import { useLink } from "@/stores/link";
import { useView } from "@/stores/view";

const WORDS = { live: "Live", connecting: "Connecting", disconnected: "Disconnected" } as const;
const LOOKS = {
  live: "bg-ok-soft text-ok",
  connecting: "bg-warn-soft text-warn",
  disconnected: "bg-bad-soft text-bad",
} as const;

/** The state of the one stream, in words and colour; hover tells the age of the last event and the next try. */
export function ConnectionPill() {
  const { state, detail, retryAt, lastEventAt } = useLink();
  const demo = useView((view) => view.demo);
  const now = useNow();
  const age = lastEventAt === null ? "No event yet." : `Last event ${formatAge(lastEventAt, now)}.`;
  const retryIn = retryAt === null || state === "live" ? null : Math.max(0, Math.ceil((retryAt - now) / 1000));
  const title = `${demo ? "Recorded source. " : ""}${detail} ${age}${retryIn === null ? "" : ` Next try in ${retryIn} s.`}`;
  return (
    <span
      data-testid="connection"
      data-state={state}
      title={title}
      className={cx(
        "inline-flex h-6 shrink-0 items-center gap-1.5 rounded-full px-2.5 text-xs font-medium",
        demo ? "bg-accent-soft text-accent" : LOOKS[state],
      )}
    >
      <span
        aria-hidden="true"
        className={cx(
          "size-1.5 bg-current",
          state === "disconnected" ? "rounded-[1px]" : "rounded-full",
          state === "connecting" && "animate-[pulse-dot_1.2s_0.5s_infinite]",
        )}
      />
      <span role="status">{demo ? "Recorded" : WORDS[state]}</span>
      {retryIn !== null && retryIn > 0 && <span className="opacity-80 max-md:hidden">retry {retryIn} s</span>}
    </span>
  );
}
