import { type FormEvent, useState } from "react";
import type { RunInfo } from "@/api/wire";
import { describe } from "@/components/ui/confirm";
import { Dialog } from "@/components/ui/dialog";
import { FormFoot } from "@/components/ui/form-foot";
import { Field, Input } from "@/components/ui/input";
import { displayName } from "@/stores/catalog";
import { toast } from "@/stores/overlay";
import { saveRun } from "./run-actions";

/** Tags, group and notes are the server's to keep, so that everybody sees them. */
export function LabelsDialog({ run, onClose }: { run: RunInfo; onClose(): void }) {
  const [notes, setNotes] = useState(run.notes ?? "");
  const [tags, setTags] = useState(run.tags.join(", "));
  const [group, setGroup] = useState(run.group ?? "");
  const [error, setError] = useState<string | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await saveRun(run.run_id, { ...(notes !== (run.notes ?? "") && { notes }), ...labels() });
      toast("Saved.", "ok");
      onClose();
    } catch (cause) {
      setError(describe(cause));
    }
  };
  /** What was not touched stays the script's own. */
  const labels = () => ({
    ...(tags !== run.tags.join(", ") && { tags: wordsOf(tags) }),
    ...(group !== (run.group ?? "") && { group }),
  });
  const isChanged = notes !== (run.notes ?? "") || Object.keys(labels()).length > 0;
  return (
    <Dialog title={`Notes on ${displayName(run)}`} onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3 p-4">
        <Field label="Tags" hint="Divided by commas.">
          {(props) => <Input {...props} value={tags} onChange={(event) => setTags(event.target.value)} />}
        </Field>
        <Field label="Group" hint="Runs that belong together: a sweep, a paper's table.">
          {(props) => <Input {...props} value={group} onChange={(event) => setGroup(event.target.value)} />}
        </Field>
        <Field label="Notes" hint="What is this run about? Everybody sees it.">
          {(props) => (
            <textarea
              {...props}
              rows={7}
              value={notes}
              onChange={(event) => setNotes(event.target.value)}
              className="rounded-md border border-line-strong bg-surface px-2 py-1.5 text-xs leading-5"
            />
          )}
        </Field>
        <FormFoot refusal={error} submit="Save" disabled={!isChanged} onClose={onClose} />
      </form>
    </Dialog>
  );
}

function wordsOf(text: string): string[] {
  return text
    .split(",")
    .map((word) => word.trim())
    .filter(Boolean);
}
