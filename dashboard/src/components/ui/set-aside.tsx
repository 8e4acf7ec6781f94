import { Panel } from "@/components/ui/panel";
import { formatCount, formatDateTime } from "@/lib/format";
import { useCluster } from "@/stores/cluster";

/** What the server could not deal with and put aside so that everything else goes on. Nothing is shown while there is none. */
export function SetAsidePanel() {
  const parts = useCluster((state) => state.coordinator?.set_aside);
  if (!parts?.length) return null;
  const total = parts.reduce((sum, part) => sum + part.count, 0);
  return (
    <Panel title="Set aside" note={`${formatCount(total)} that the server could not deal with; the rest goes on`}>
      <ul className="grid gap-3 text-xs">
        {parts.map((part) => (
          <li key={part.part} className="min-w-0">
            <p className="font-medium">
              {part.part} <span className="font-normal text-muted">{formatCount(part.count)}</span>
            </p>
            {part.items.map((item) => (
              <p key={item.item} className="mt-1 break-words text-muted">
                <bdi className="break-all text-fg">{item.item}</bdi>: <bdi>{item.reason}</bdi>{" "}
                <span className="whitespace-nowrap text-faint">{formatDateTime(item.at_ms)}</span>
              </p>
            ))}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
