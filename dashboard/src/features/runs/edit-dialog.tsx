import { type FormEvent, useState } from "react";
import type { RunInfo } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { describe } from "@/components/ui/confirm";
import { Dialog } from "@/components/ui/dialog";
import { Field, Input } from "@/components/ui/input";
import { requests } from "@/data/source";
import { setRuns } from "@/stores/catalog";
import { toast } from "@/stores/overlay";

/** Name and notes are the server's to keep, so that everybody sees them. */
export function EditDialog({ run, onClose }: { run: RunInfo; onClose(): void }) {
  const [name, setName] = useState(run.name ?? "");
  const [notes, setNotes] = useState(run.notes ?? "");
  const [error, setError] = useState<string | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await requests().editRun(run.run_id, { name: name.trim(), notes });
      setRuns(await requests().runs());
      toast("Saved.", "ok");
      onClose();
    } catch (cause) {
      setError(describe(cause));
    }
  };
  return (
    <Dialog title={`Edit ${run.run_id}`} onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3 p-4">
        <Field label="Name" hint="Shown instead of the id; empty = the id">
          {(props) => (
            <Input {...props} value={name} placeholder={run.run_id} onChange={(event) => setName(event.target.value)} />
          )}
        </Field>
        <Field label="Notes" hint="What is this run about?">
          {(props) => (
            <textarea
              {...props}
              rows={5}
              value={notes}
              onChange={(event) => setNotes(event.target.value)}
              className="rounded-md border border-line-strong bg-surface px-2 py-1.5 text-xs leading-5"
            />
          )}
        </Field>
        {error && (
          <p role="alert" className="text-xs text-bad">
            {error}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit">
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
