import { cx } from "@/lib/cx";

export type Tone = "ok" | "warn" | "bad" | "accent" | "idle";

const TONES: Record<Tone, string> = {
  ok: "text-ok",
  warn: "text-warn",
  bad: "text-bad",
  accent: "text-accent",
  idle: "text-faint",
};

/** Shape as well as colour: full, ring, half and square are told apart without seeing red or green. */
const SHAPES: Record<Tone, string> = {
  ok: "rounded-full bg-current",
  warn: "rotate-45 bg-current",
  bad: "bg-current",
  accent: "rounded-full bg-current",
  idle: "rounded-full border-[1.5px] border-current",
};

const STATUS_TONES: Record<string, Tone> = {
  active: "ok",
  running: "ok",
  completed: "ok",
  complete: "ok",
  verified: "ok",
  checkpointing: "accent",
  in_progress: "accent",
  waiting: "accent",
  queued: "idle",
  idle: "idle",
  stopped: "idle",
  finished: "idle",
  removed: "idle",
  info: "accent",
  quiet: "ok",
  sent: "ok",
  recovering: "warn",
  suspect: "warn",
  stopping: "warn",
  warning: "warn",
  firing: "bad",
  failed: "bad",
  dropped: "bad",
  killed: "bad",
  lost: "warn",
  broken: "bad",
  critical: "bad",
};

export function toneOf(status: string): Tone {
  return STATUS_TONES[status] ?? "idle";
}

/** The sign without the word, for where a word stands beside it anyway. */
export function StatusMark({ status }: { status: string }) {
  const tone = toneOf(status);
  return <span aria-hidden="true" className={cx("size-[7px] shrink-0", TONES[tone], SHAPES[tone])} />;
}

export function StatusLabel({ status, className }: { status: string; className?: string }) {
  const tone = toneOf(status);
  return (
    <span className={cx("inline-flex items-center gap-1.5 whitespace-nowrap", className)}>
      <StatusMark status={status} />
      <span className={tone === "bad" || tone === "warn" ? TONES[tone] : ""}>{status.replace("_", " ")}</span>
    </span>
  );
}

export function Tag({ children, tone = "idle" }: { children: string; tone?: Tone }) {
  const soft = {
    ok: "bg-ok-soft",
    warn: "bg-warn-soft",
    bad: "bg-bad-soft",
    accent: "bg-accent-soft",
    idle: "bg-sunken",
  };
  return (
    <span
      className={cx(
        "inline-flex h-5 items-center rounded px-1.5 text-2xs font-medium",
        soft[tone],
        tone === "idle" ? "text-muted" : TONES[tone],
      )}
    >
      {children}
    </span>
  );
}
