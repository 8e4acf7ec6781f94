import { X } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import { cx } from "@/lib/cx";
import { Button } from "./button";

interface Props {
  title: string;
  onClose(): void;
  children: ReactNode;
  className?: string;
  /** A sheet stands at the right edge over the full height. */
  sheet?: boolean;
  bare?: boolean;
}

/** The browser's own modal dialog: focus trap, Escape and inert background come with it. */
export function Dialog({ title, onClose, children, className, sheet = false, bare = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);

  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // The browser would pick the close button; a form's first field or the dialog itself is the better start.
    (element?.querySelector<HTMLElement>("input, textarea, select") ?? element)?.focus();
    return () => element?.close();
  }, []);

  return (
    <dialog
      ref={dialog}
      aria-label={title}
      tabIndex={-1}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onPointerDown={(event) => {
        if (event.target === dialog.current) onClose();
      }}
      className={cx(
        "bg-surface shadow-(--shadow) outline-none",
        sheet
          ? "my-0 mr-0 ml-auto h-dvh max-h-none w-full max-w-[560px] border-l border-line-strong"
          : "mx-auto mt-[10vh] w-[calc(100vw-24px)] max-w-lg rounded-lg border border-line-strong",
        className,
      )}
    >
      {!bare && (
        <header className="flex h-11 items-center justify-between border-b border-line pr-2 pl-4">
          <h2 className="truncate text-sm font-semibold">{title}</h2>
          <Button look="quiet" icon aria-label="Close" onClick={onClose}>
            <X size={15} />
          </Button>
        </header>
      )}
      {children}
    </dialog>
  );
}
