import type { RunInfo } from "@/api/wire";
import { Confirm } from "@/components/ui/confirm";
import { displayName } from "@/stores/catalog";
import { toast } from "@/stores/overlay";
import { deleteRun } from "./run-actions";

interface Props {
  run: RunInfo;
  onClose(): void;
  onDeleted?(): void;
}

export function DeleteDialog({ run, onClose, onDeleted }: Props) {
  const name = displayName(run);
  return (
    <Confirm
      title={`Delete ${name}?`}
      verb="Delete run"
      onClose={onClose}
      onConfirm={async () => {
        await deleteRun(run.run_id);
        toast(`${name} was deleted.`, "ok");
        onDeleted?.();
      }}
    >
      {run.name && run.name !== run.run_id && <code className="block font-mono text-xs break-all">{run.run_id}</code>}
      Its metrics are removed for everybody and cannot be brought back; what still comes in under this id is dropped.
      Checkpoints and logs stay.
    </Confirm>
  );
}
