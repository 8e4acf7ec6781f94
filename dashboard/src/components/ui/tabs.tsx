import { useRef } from "react";
import { cx } from "@/lib/cx";

interface Props<T extends string> {
  label: string;
  value: T;
  tabs: readonly { value: T; label: string; count?: number }[];
  onChange(value: T): void;
}

/** Arrow keys move between tabs, as the tab pattern asks. */
export function Tabs<T extends string>({ label, value, tabs, onChange }: Props<T>) {
  const list = useRef<HTMLDivElement>(null);
  const move = (by: number) => {
    const at = tabs.findIndex((tab) => tab.value === value);
    const next = tabs[(at + by + tabs.length) % tabs.length];
    if (!next) return;
    onChange(next.value);
    list.current?.querySelector<HTMLElement>(`[data-tab="${next.value}"]`)?.focus();
  };
  return (
    <div
      ref={list}
      role="tablist"
      aria-label={label}
      className="flex min-w-0 gap-4 overflow-x-auto border-b border-line"
    >
      {tabs.map((tab) => (
        <button
          key={tab.value}
          type="button"
          role="tab"
          data-tab={tab.value}
          aria-selected={tab.value === value}
          tabIndex={tab.value === value ? 0 : -1}
          onClick={() => onChange(tab.value)}
          onKeyDown={(event) => {
            if (event.key === "ArrowRight") move(1);
            if (event.key === "ArrowLeft") move(-1);
          }}
          className={cx(
            "-mb-px flex h-8 items-center gap-1.5 border-b-2 text-sm whitespace-nowrap focus-visible:outline-offset-[-2px]",
            tab.value === value ? "border-accent font-medium text-fg" : "border-transparent text-muted hover:text-fg",
          )}
        >
          {tab.label}
          {tab.count !== undefined && <span className="text-xs text-faint">{tab.count}</span>}
        </button>
      ))}
    </div>
  );
}
