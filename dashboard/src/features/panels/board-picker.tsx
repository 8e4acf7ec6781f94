import { ChevronDown } from "lucide-react";
import { PageLink } from "@/components/ui/page-link";
import { Popover } from "@/components/ui/popover";
import { useResource } from "@/hooks/resource";
import { cx } from "@/lib/cx";
import { groupBy } from "@/lib/group-by";

/** Saved dashboards by project, and the one that is made from the metrics. */
export function BoardPicker({ current }: { current: string | null }) {
  return (
    <Popover
      label="Open dashboard"
      align="right"
      className="max-h-96 w-72 overflow-y-auto py-1 max-sm:right-auto max-sm:left-0"
      trigger={
        <>
          Open <ChevronDown size={13} className="text-faint" aria-hidden="true" />
        </>
      }
    >
      {(close) => <BoardList current={current} onOpen={close} />}
    </Popover>
  );
}

/** Asked for when it is opened, so that what was just saved is in it. */
function BoardList({ current, onOpen }: { current: string | null; onOpen(): void }) {
  const { data = [] } = useResource(["dashboards"], (requests, signal) => requests.dashboards(signal));
  const row = (id: string | null, name: string, note: string) => (
    <PageLink
      key={id ?? ""}
      page="dashboards"
      {...(id !== null && { id })}
      className={cx(
        "flex h-8 items-center gap-2 px-3 text-xs hover:bg-hover",
        id === current && "font-semibold text-accent",
      )}
    >
      <span className="truncate">{name}</span>
      <span className="ml-auto shrink-0 text-2xs text-faint">{note}</span>
    </PageLink>
  );
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter on a link is a click
    <nav aria-label="Dashboards" onClick={onOpen}>
      {row(null, "Default", "from the metrics")}
      {[...groupBy(data, (one) => one.project)].map(([project, list]) => (
        <div key={project}>
          <p className="px-3 pt-2 pb-1 text-2xs font-medium text-faint">{project || "No project"}</p>
          {list.map((one) => row(one.id, one.name, `${one.num_panels} panels`))}
        </div>
      ))}
    </nav>
  );
}
