import type { ReactNode } from "react";
import { cx } from "@/lib/cx";

interface Props {
  label: string;
  value: ReactNode;
  unit?: string;
  note?: ReactNode;
  className?: string;
}

/** A number with its name; the number is what the eye should find. */
export function Stat({ label, value, unit, note, className }: Props) {
  return (
    <div className={cx("min-w-0", className)}>
      <p className="truncate text-2xs text-faint">{label}</p>
      <p className="truncate text-lg leading-7 font-semibold tracking-tight">
        {value}
        {unit && <span className="ml-1 text-xs font-normal text-muted">{unit}</span>}
      </p>
      {note !== undefined && <p className="truncate text-2xs text-muted">{note}</p>}
    </div>
  );
}
