import { Pencil } from "lucide-react";
import { type KeyboardEvent, useState } from "react";
import type { RunInfo } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { describe } from "@/components/ui/confirm";
import { Input } from "@/components/ui/input";
import { displayName } from "@/stores/catalog";
import { toast } from "@/stores/overlay";
import { saveRun } from "./run-actions";

/** The name in place: Enter or leaving the field saves, Escape gives up, empty gives the run's own name back. */
export function RenameField({ run, onClose }: { run: RunInfo; onClose(): void }) {
  const before = displayName(run);
  const [name, setName] = useState(before);
  const [done, setDone] = useState(false);
  const save = async () => {
    if (done) return;
    setDone(true);
    if (name.trim() === before) return onClose();
    try {
      await saveRun(run.run_id, { name: name.trim() });
      onClose();
    } catch (cause) {
      toast(describe(cause), "bad");
      setDone(false);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") void save();
    if (event.key === "Escape") {
      setDone(true);
      onClose();
    }
    event.stopPropagation();
  };
  return (
    <Input
      autoFocus
      aria-label={`New name of ${run.run_id}`}
      maxLength={255}
      value={name}
      onChange={(event) => setName(event.target.value)}
      onFocus={(event) => event.target.select()}
      onBlur={() => void save()}
      onKeyDown={onKeyDown}
      className="w-56 max-sm:w-36"
    />
  );
}

export function RenameButton({ name, onClick }: { name: string; onClick(): void }) {
  return (
    <Button
      needs="PATCH /runs/{run_id}"
      look="quiet"
      icon
      aria-label={`Rename ${name}`}
      title="Rename"
      onClick={onClick}
    >
      <Pencil size={13} />
    </Button>
  );
}
