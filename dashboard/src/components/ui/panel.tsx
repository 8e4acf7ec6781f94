import type { ReactNode } from "react";
import { cx } from "@/lib/cx";

interface Props {
  title?: ReactNode;
  note?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  className?: string;
  /** Lets tables run to the edges. */
  flush?: boolean;
}

/** A titled box: the only kind of card on the page. */
export function Panel({ title, note, actions, children, className, flush = false }: Props) {
  return (
    <section className={cx("min-w-0 rounded-lg border border-line bg-surface", className)}>
      {title !== undefined && (
        <header className="flex min-h-10 flex-wrap items-center gap-x-2 gap-y-1 border-b border-line px-3 py-1.5">
          <h2 className="text-sm font-semibold">{title}</h2>
          {note !== undefined && <span className="text-xs text-muted">{note}</span>}
          {actions !== undefined && <div className="ml-auto flex items-center gap-2">{actions}</div>}
        </header>
      )}
      <div className={flush ? "" : "p-3"}>{children}</div>
    </section>
  );
}
