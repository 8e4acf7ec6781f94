import { useState } from "react";
import type { SavedDashboard } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { describe } from "@/components/ui/confirm";
import { Dialog } from "@/components/ui/dialog";
import { importBoard } from "./save";

interface Props {
  onImported(saved: SavedDashboard): void;
  onClose(): void;
}

/** A file that cannot be read is refused with the place: in the text by the browser, in the layout by the server. */
export function ImportDialog({ onImported, onClose }: Props) {
  const [error, setError] = useState<string | null>(null);
  const take = async (file: File | undefined) => {
    if (!file) return;
    try {
      const saved = await importBoard(await file.text());
      onClose();
      onImported(saved);
    } catch (cause) {
      setError(describe(cause));
    }
  };
  return (
    <Dialog title="Import dashboard" onClose={onClose} className="max-w-sm">
      <div className="flex flex-col gap-3 p-4 text-xs">
        <p className="text-muted">A file that “Export JSON” wrote becomes a new dashboard, saved at once.</p>
        <input
          type="file"
          aria-label="Dashboard file"
          accept="application/json,.json"
          onChange={(event) => {
            setError(null);
            void take(event.target.files?.[0]);
            event.target.value = "";
          }}
        />
        {error && (
          <p role="alert" className="text-bad">
            {error}
          </p>
        )}
        <Button className="self-end" onClick={onClose}>
          Cancel
        </Button>
      </div>
    </Dialog>
  );
}
