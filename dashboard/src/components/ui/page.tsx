import { type ReactNode, useEffect } from "react";
import { cx } from "@/lib/cx";
import { useLink } from "@/stores/link";

interface Props {
  title: string;
  note?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** Fills the window instead of scrolling as a whole (logs). */
  fill?: boolean;
}

/** The frame of every page. While the stream is away, what is shown is dimmed: it is old, but it is what we know. */
export function Page({ title, note, actions, children, fill = false }: Props) {
  const stale = useLink((link) => link.state === "disconnected" && link.lastEventAt !== null);
  useEffect(() => {
    document.title = `${title} · Strata`;
  }, [title]);
  return (
    <div className={cx("mx-auto flex w-full max-w-[1680px] flex-col gap-3 p-4 max-md:p-3", fill && "h-full")}>
      <header className="flex min-h-7 flex-wrap items-center gap-x-3 gap-y-2">
        <h1 className="text-base font-semibold tracking-tight">{title}</h1>
        {note !== undefined && <p className="text-xs text-muted">{note}</p>}
        {actions !== undefined && <div className="ml-auto flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      <div
        data-stale={stale || undefined}
        className={cx(
          "flex min-w-0 flex-col gap-3 transition-opacity",
          fill && "min-h-0 flex-1",
          stale && "opacity-60",
        )}
      >
        {children}
      </div>
    </div>
  );
}
