import { type ReactNode, useState } from "react";
import { ApiError } from "@/api/client";
import { Button } from "./button";
import { Dialog } from "./dialog";

interface Props {
  title: string;
  verb: string;
  look?: "danger" | "primary";
  children: ReactNode;
  onConfirm(): Promise<void>;
  onClose(): void;
}

/** Asks before something that ends or begins much; says what the server answered when it refuses. */
export function Confirm({ title, verb, look = "danger", children, onConfirm, onClose }: Props) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const run = async () => {
    setBusy(true);
    try {
      await onConfirm();
      onClose();
    } catch (cause) {
      setError(describe(cause));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose} className="max-w-sm">
      <div className="px-4 py-3 text-sm leading-6 text-muted">{children}</div>
      {error && (
        <p role="alert" className="px-4 pb-2 text-xs text-bad">
          {error}
        </p>
      )}
      <div className="flex justify-end gap-2 border-t border-line px-4 py-3">
        <Button onClick={onClose}>Cancel</Button>
        <Button look={look} disabled={busy} onClick={run}>
          {busy ? "Working…" : verb}
        </Button>
      </div>
    </Dialog>
  );
}

export function describe(cause: unknown): string {
  if (cause instanceof ApiError) {
    const said = sentence(cause.message);
    return cause.hint ? `${said} ${cause.hint}` : said;
  }
  return cause instanceof Error ? cause.message : String(cause);
}

/** The server's words begin small and end without a stop, as log lines do. */
function sentence(text: string): string {
  const begun = text.slice(0, 1).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
