import type { ReactNode } from "react";

/** Why a panel shows nothing, in its place. */
export function Note({ children, bad = false }: { children: ReactNode; bad?: boolean }) {
  return (
    <p
      className={`flex h-full items-center justify-center px-4 text-center text-xs ${bad ? "text-bad" : "text-muted"}`}
    >
      {children}
    </p>
  );
}
