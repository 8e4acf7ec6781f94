import type { ReactNode } from "react";
import { cx } from "@/lib/cx";

interface Props {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
  tone?: "plain" | "bad";
  className?: string;
}

/** Nothing to show, and why. Every state has its own words; none is just blank. */
export function Empty({ title, children, action, tone = "plain", className }: Props) {
  return (
    <div
      role={tone === "bad" ? "alert" : undefined}
      className={cx("flex flex-col items-center justify-center gap-1.5 px-6 py-10 text-center", className)}
    >
      <p className={cx("text-sm font-medium", tone === "bad" && "text-bad")}>{title}</p>
      {children && <div className="max-w-[min(28rem,100%)] text-xs leading-5 text-muted">{children}</div>}
      {action && <div className="mt-2">{action}</div>}
    </div>
  );
}

/** Lines of the final height while an answer is on its way, so that nothing jumps. */
export function Skeleton({ rows = 5 }: { rows?: number }) {
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-2.5 p-3">
      {Array.from({ length: rows }, (_, i) => `row-${i}`).map((key, i) => (
        <div key={key} className="skeleton h-4" style={{ width: `${92 - ((i * 17) % 40)}%` }} />
      ))}
    </div>
  );
}

/** A shell line to copy. */
export function Code({ children }: { children: string }) {
  return (
    <pre className="mt-2 overflow-x-auto rounded-md border border-line bg-sunken px-3 py-2 text-left font-mono text-xs leading-5 text-fg">
      {children}
    </pre>
  );
}
