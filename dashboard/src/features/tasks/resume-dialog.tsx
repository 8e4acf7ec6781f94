import type { Checkpoint, Task } from "@/api/wire";
import { Confirm } from "@/components/ui/confirm";
import { requests } from "@/data/source";
import { isGood } from "@/lib/checkpoints";
import { formatCount } from "@/lib/format";
import { useCluster } from "@/stores/cluster";
import { toast } from "@/stores/overlay";

export function ResumeDialog({ task, onClose }: { task: Task; onClose(): void }) {
  const saved = useCluster((state) => lastStep(state.checkpoints, task.id));
  const from =
    saved === null ? "It has no checkpoint, so it starts at step 0" : `It goes on from step ${formatCount(saved)}`;
  return (
    <Confirm
      title={`Resume ${task.name}?`}
      verb="Resume task"
      look="primary"
      onClose={onClose}
      onConfirm={async () => {
        const { from_step: step } = await requests().resumeTask(task.id);
        toast(`${task.name} ${step === null ? "starts at step 0" : `goes on from step ${formatCount(step)}`}.`, "ok");
      }}
    >
      {from}, as attempt {(task.attempt ?? 0) + 1} of the same run. Its restarts are counted anew.
    </Confirm>
  );
}

function lastStep(checkpoints: readonly Checkpoint[], task: string): number | null {
  const steps = checkpoints.filter((one) => one.task_id === task && isGood(one)).map((one) => one.step);
  return steps.length > 0 ? Math.max(...steps) : null;
}
