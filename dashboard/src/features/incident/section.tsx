import type { ReactNode } from "react";

/** One kind of evidence. */
export function Section({ title, note, children }: { title: string; note?: string; children: ReactNode }) {
  return (
    <section className="border-b border-line px-4 py-3 last:border-0">
      <h3 className="mb-2 text-xs font-semibold">
        {title} {note && <span className="font-normal text-faint">{note}</span>}
      </h3>
      {children}
    </section>
  );
}

/** The kind was looked for, and there is nothing. */
export const None = ({ children }: { children: ReactNode }) => <p className="text-xs text-muted">{children}</p>;
