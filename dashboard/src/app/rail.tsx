import { PageLink } from "@/components/ui/page-link";
import { cx } from "@/lib/cx";
import type { Place } from "@/lib/routes";
import { useAlerts } from "@/stores/alerts";
import { useOverlay } from "@/stores/overlay";
import { ENTRIES } from "./navigation";

export function Wordmark() {
  return (
    <span className="flex items-center gap-2 text-[15px] font-semibold tracking-tight">
      <svg
        viewBox="0 0 32 32"
        className="size-5"
        aria-hidden="true"
        fill="none"
        strokeWidth="2.6"
        strokeLinejoin="round"
      >
        <path d="M6 21.5 16 26.5l10-5" stroke="var(--accent)" opacity=".55" strokeLinecap="round" />
        <path d="M6 16 16 21l10-5" stroke="var(--accent)" strokeLinecap="round" />
        <path d="M16 5 26 10.2 16 15.4 6 10.2z" fill="var(--fg)" />
      </svg>
      Strata
    </span>
  );
}

export function Rail({ place }: { place: Place }) {
  const unread = useAlerts((state) => state.unread);
  const menu = useOverlay((state) => state.menu);
  const close = () => useOverlay.setState({ menu: false });
  return (
    <>
      {menu && (
        <button
          type="button"
          aria-label="Close menu"
          className="fixed inset-0 z-40 bg-black/45 md:hidden"
          onClick={close}
        />
      )}
      <aside
        className={cx(
          "z-50 flex w-[184px] shrink-0 flex-col border-r border-line bg-surface",
          "max-md:fixed max-md:inset-y-0 max-md:left-0 max-md:w-60 max-md:shadow-(--shadow)",
          !menu && "max-md:hidden",
        )}
      >
        <PageLink page="overview" className="flex h-12 items-center px-4" onClick={close}>
          <Wordmark />
        </PageLink>
        <nav aria-label="Pages" className="flex flex-col gap-px px-2 py-1">
          {ENTRIES.map(({ page, label, icon: Icon }) => {
            const current = place.page === page;
            return (
              <PageLink
                key={page}
                page={page}
                onClick={close}
                aria-current={current ? "page" : undefined}
                className={cx(
                  "flex h-8 items-center gap-2.5 rounded-md px-2 text-sm max-md:h-10",
                  current ? "bg-hover font-medium text-fg" : "text-muted hover:bg-hover hover:text-fg",
                )}
              >
                <Icon size={16} strokeWidth={1.75} aria-hidden="true" className={current ? "text-accent" : ""} />
                {label}
                {page === "alerts" && unread > 0 && (
                  <span className="ml-auto rounded-full bg-bad-soft px-1.5 text-2xs font-semibold text-bad">
                    {unread > 99 ? "99+" : unread}
                    <span className="sr-only"> new</span>
                  </span>
                )}
              </PageLink>
            );
          })}
        </nav>
        <p className="mt-auto px-4 py-3 text-2xs text-faint max-md:hidden">
          Press <kbd className="rounded border border-line-strong px-1 font-mono">?</kbd> for keys
        </p>
      </aside>
    </>
  );
}
