import { GoodputBar } from "@/components/ui/goodput-bar";
import { PageLink } from "@/components/ui/page-link";
import { useResource } from "@/hooks/resource";
import { formatPercent } from "@/lib/format";

/** A thin bar of the task's wall time; its page has the legend. Nothing while nothing was measured. */
export function GoodputLine({ task }: { task: string }) {
  const { data } = useResource(["course", task], (it, signal) => it.course(task, signal), { everyMs: 5000 });
  if (!data?.shares || data.goodput_percent === null) return null;
  return (
    <div className="mt-3 flex items-center gap-3 border-t border-line pt-3 text-xs">
      <PageLink page="tasks" id={task} className="shrink-0 text-muted hover:underline">
        {formatPercent(data.goodput_percent, 1)} of its time trained
      </PageLink>
      <div className="min-w-0 flex-1">
        <GoodputBar shares={data.shares} />
      </div>
    </div>
  );
}
