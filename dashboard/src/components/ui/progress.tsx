import { cx } from "@/lib/cx";

interface Props {
  /** 0–100; null = not known. */
  value: number | null | undefined;
  label: string;
  className?: string;
  tone?: "accent" | "ok" | "warn" | "bad" | "idle";
}

const FILLS = { accent: "bg-accent", ok: "bg-ok", warn: "bg-warn", bad: "bg-bad", idle: "bg-idle" };

export function ProgressBar({ value, label, className, tone = "accent" }: Props) {
  const known = value !== null && value !== undefined;
  const width = known ? Math.min(100, Math.max(0, value)) : 0;
  return (
    <span
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      {...(known && { "aria-valuenow": Math.round(width) })}
      className={cx("block h-1.5 overflow-hidden rounded-full bg-hover", !known && "hatch", className)}
    >
      <span className={cx("block h-full rounded-full", FILLS[tone])} style={{ width: `${width}%` }} />
    </span>
  );
}
