import { cx } from "@/lib/cx";

interface Props<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; label: string; title?: string }[];
  onChange(value: T): void;
  className?: string;
}

/** One choice out of a few, as a row of buttons. */
export function Segmented<T extends string>({ label, value, options, onChange, className }: Props<T>) {
  return (
    <fieldset
      aria-label={label}
      className={cx("inline-flex h-7 shrink-0 rounded-md bg-sunken p-0.5 max-md:h-8", className)}
    >
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          title={option.title}
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
          className={cx(
            "rounded-[5px] px-2 text-xs font-medium whitespace-nowrap transition-colors",
            option.value === value
              ? "bg-surface text-fg shadow-[0_0_0_1px_var(--line-strong)]"
              : "text-muted hover:text-fg",
          )}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}
