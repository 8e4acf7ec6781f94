import { Archive, ArchiveRestore, Tag, Trash2, X } from "lucide-react";
import { type FormEvent, useState } from "react";
import type { RunInfo } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { Confirm, describe } from "@/components/ui/confirm";
import { Input } from "@/components/ui/input";
import { formatCount } from "@/lib/format";
import { toast } from "@/stores/overlay";
import { deleteRuns, saveRuns } from "./run-actions";

interface Props {
  runs: readonly RunInfo[];
  onClear(): void;
  onChanged(): void;
}

/** What can be done to all selected runs at once. */
export function BulkBar({ runs, onClear, onChanged }: Props) {
  const [tag, setTag] = useState("");
  const [deleting, setDeleting] = useState(false);
  const run_ids = runs.map((run) => run.run_id);
  const many = `${formatCount(runs.length)} ${runs.length === 1 ? "run" : "runs"}`;
  const allArchived = runs.every((run) => run.archived);
  const change = async (body: { add_tags?: string[]; archived?: boolean }, said: string) => {
    try {
      await saveRuns({ run_ids, ...body });
      toast(said, "ok");
      onChanged();
    } catch (cause) {
      toast(describe(cause), "bad");
    }
  };
  const addTag = (event: FormEvent) => {
    event.preventDefault();
    const add_tags = tag
      .split(",")
      .map((one) => one.trim())
      .filter(Boolean);
    if (add_tags.length > 0) void change({ add_tags }, `${many} tagged ${add_tags.join(", ")}.`).then(() => setTag(""));
  };
  return (
    <section
      aria-label="Selected runs"
      className="flex flex-wrap items-center gap-2 border-b border-line px-3 py-2 text-xs"
    >
      <span className="font-medium tabular-nums">{many} selected</span>
      <form onSubmit={addTag} className="flex gap-1.5">
        <Input
          aria-label="Tag for the selected runs"
          placeholder="Tag"
          value={tag}
          onChange={(event) => setTag(event.target.value)}
          className="w-28"
        />
        <Button type="submit" disabled={tag.trim() === ""}>
          <Tag size={13} aria-hidden="true" /> Add tag
        </Button>
      </form>
      <Button
        onClick={() =>
          change({ archived: !allArchived }, `${many} ${allArchived ? "are back in the list" : "archived"}.`).then(
            onClear,
          )
        }
      >
        {allArchived ? <ArchiveRestore size={13} aria-hidden="true" /> : <Archive size={13} aria-hidden="true" />}
        {allArchived ? "Restore" : "Archive"}
      </Button>
      <Button onClick={() => setDeleting(true)}>
        <Trash2 size={13} aria-hidden="true" /> Delete
      </Button>
      <Button look="quiet" icon aria-label="Clear selection" title="Clear selection" onClick={onClear}>
        <X size={13} />
      </Button>
      {deleting && (
        <Confirm
          title={`Delete ${many}?`}
          verb={`Delete ${many}`}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            const refused = await deleteRuns(run_ids);
            onChanged();
            if (refused.length > 0)
              throw new Error(`${formatCount(refused.length)} could not be deleted. ${refused[0]}`);
            toast(`${many} deleted.`, "ok");
            onClear();
          }}
        >
          Their metrics are removed for everybody and cannot be brought back. Checkpoints and logs stay. Archived runs
          are kept and only leave the list.
        </Confirm>
      )}
    </section>
  );
}
