import { describe } from "@/components/ui/confirm";
import { useResource } from "@/hooks/resource";
import { cx } from "@/lib/cx";
import { formatClock } from "@/lib/format";

interface Props {
  task: string;
  /** Unix seconds: the interruption nearest to it, instead of the newest. */
  at?: number | null;
  everyMs?: number;
}

/** Neither of them is a fault. */
const CALM: readonly string[] = ["none", "waiting", "stopped", "grown", "host_drained", "coordinator_restarted"];

/** Commands stand between backticks, as in the terminal. */
function WithCommands({ text }: { text: string }) {
  const parts = text.split("`");
  return parts.map((part, place) =>
    place % 2 === 1 ? (
      <code key={part} className="rounded bg-sunken px-1 font-mono">
        {part}
      </code>
    ) : (
      part
    ),
  );
}

/** Why a task stands as it does, as the server decided it: one sentence, what to do, and what was seen. */
export function VerdictText({ task, at = null, everyMs }: Props) {
  const { data, error } = useResource(["why", task, at], (it, signal) => it.why(task, at, signal), {
    ...(everyMs !== undefined && { everyMs }),
  });
  if (error) return <p className="text-xs text-muted">Why could not be asked: {describe(error)}</p>;
  if (!data) return null;
  const said = data.sentence.endsWith(data.advice) ? data.sentence.slice(0, -data.advice.length).trim() : data.sentence;
  return (
    <div data-testid="verdict" className="flex flex-col gap-1 text-xs leading-5">
      <p className={cx("text-sm font-medium break-words", !CALM.includes(data.kind) && "text-bad")}>{said}</p>
      <p className="break-words">
        <WithCommands text={data.advice} />
      </p>
      {data.evidence.length > 0 && (
        <details className="text-muted">
          <summary className="cursor-pointer">What was seen</summary>
          <ul className="mt-1 flex flex-col gap-0.5">
            {data.evidence.map((seen) => (
              <li key={`${seen.source} ${seen.rank} ${seen.text}`} className="break-words">
                {seen.at_ms !== null && <span className="font-mono">{formatClock(seen.at_ms)} </span>}
                {seen.source}: {seen.text}
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
