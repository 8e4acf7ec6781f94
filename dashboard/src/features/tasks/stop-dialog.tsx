import type { Task } from "@/api/wire";
import { Confirm } from "@/components/ui/confirm";
import { requests } from "@/data/source";
import { toast } from "@/stores/overlay";

export function StopDialog({ task, onClose }: { task: Task; onClose(): void }) {
  return (
    <Confirm
      title={`Stop ${task.name}?`}
      verb="Stop task"
      onClose={onClose}
      onConfirm={async () => {
        await requests().stopTask(task.id);
        toast(`${task.name} is being stopped.`, "ok");
      }}
    >
      Its workers are asked to finish, get time to save a last checkpoint, and are then ended. You can resume it from
      that checkpoint.
    </Confirm>
  );
}
