import { type ReactNode, useEffect, useRef, useState } from "react";
import { cx } from "@/lib/cx";
import { Button } from "./button";

interface Props {
  label: string;
  trigger: ReactNode;
  children: ReactNode | ((close: () => void) => ReactNode);
  align?: "left" | "right";
  className?: string;
  triggerClassName?: string;
}

/** A button with a panel below it; closes on Escape, on a click outside and when the focus leaves. */
export function Popover({ label, trigger, children, align = "left", className, triggerClassName }: Props) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const close = () => setOpen(false);

  useEffect(() => {
    if (!open) return;
    const onPointer = (event: PointerEvent) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      setOpen(false);
      box.current?.querySelector("button")?.focus();
    };
    document.addEventListener("pointerdown", onPointer);
    document.addEventListener("keydown", onKey);
    return () => {
      document.removeEventListener("pointerdown", onPointer);
      document.removeEventListener("keydown", onKey);
    };
  }, [open]);

  return (
    <div ref={box} className="relative min-w-0">
      <Button aria-label={label} aria-expanded={open} className={triggerClassName} onClick={() => setOpen(!open)}>
        {trigger}
      </Button>
      {open && (
        <div
          className={cx(
            "absolute top-full z-40 mt-1 rounded-lg border border-line-strong bg-surface shadow-(--shadow)",
            align === "right" ? "right-0" : "left-0",
            className,
          )}
        >
          {typeof children === "function" ? children(close) : children}
        </div>
      )}
    </div>
  );
}
