import type { ButtonHTMLAttributes } from "react";
import type { Answers } from "@/api/wire";
import { cx } from "@/lib/cx";
import { useRights } from "@/stores/rights";

type Look = "plain" | "primary" | "quiet" | "danger";

const LOOKS: Record<Look, string> = {
  plain: "border border-line-strong bg-surface hover:bg-hover",
  primary: "border border-transparent bg-accent text-surface hover:brightness-110",
  quiet: "border border-transparent text-muted hover:bg-hover hover:text-fg",
  danger: "border border-transparent bg-bad text-surface hover:brightness-110",
};

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  icon?: boolean;
  /** The request that a click leads to: whoever may not send it does not see the button. */
  needs?: keyof Answers;
}

export function Button({ look = "plain", icon = false, needs, className, ...rest }: Props) {
  const shown = useRights((state) => needs === undefined || state.may.has(needs));
  if (!shown) return null;
  return (
    <button
      type="button"
      className={cx(
        "inline-flex h-7 shrink-0 items-center justify-center gap-1.5 rounded-md text-xs font-medium whitespace-nowrap",
        "transition-colors disabled:opacity-50 max-md:h-8",
        icon ? "w-7 max-md:w-8" : "px-2.5",
        LOOKS[look],
        className,
      )}
      {...rest}
    />
  );
}
