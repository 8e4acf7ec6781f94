import type { InputHTMLAttributes, ReactNode, SelectHTMLAttributes, TextareaHTMLAttributes } from "react";
import { cx } from "@/lib/cx";

const BOX =
  "h-7 min-w-0 rounded-md border border-line-strong bg-surface px-2 text-xs text-fg max-md:h-8 aria-invalid:border-bad disabled:opacity-50";

export function Input({ className, ...rest }: InputHTMLAttributes<HTMLInputElement>) {
  return <input className={cx(BOX, className)} {...rest} />;
}

export function Select({ className, ...rest }: SelectHTMLAttributes<HTMLSelectElement>) {
  return <select className={cx(BOX, "pr-6", className)} {...rest} />;
}

/** Several lines that a program reads. */
export function CodeArea(props: TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <textarea
      spellCheck={false}
      className="rounded-md border border-line-strong bg-surface px-2 py-1.5 font-mono text-xs leading-5 aria-invalid:border-bad"
      {...props}
    />
  );
}

interface FieldProps {
  label: string;
  hint?: string;
  error?: string | undefined;
  children(props: { id: string; "aria-invalid": boolean; "aria-describedby": string }): ReactNode;
}

/** A labelled control with a hint, or with what is wrong. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = `field-${label.toLowerCase().replace(/\W+/g, "-")}`;
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="text-xs font-medium">
        {label}
      </label>
      {children({ id, "aria-invalid": error !== undefined, "aria-describedby": `${id}-note` })}
      <p id={`${id}-note`} className={cx("text-2xs", error ? "text-bad" : "text-faint")}>
        {error ?? hint}
      </p>
    </div>
  );
}
