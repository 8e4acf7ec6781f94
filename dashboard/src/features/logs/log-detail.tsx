import { X } from "lucide-react";
import type { LogEntry } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { formatDateTime } from "@/lib/format";
import { plainText, timeOf } from "@/lib/logs";
import { openIncident, toast } from "@/stores/overlay";
import { useView } from "@/stores/view";

/** The whole of one line, a link to it, and what else went on at that moment. */
export function LogDetail({ line }: { line: LogEntry }) {
  const { set } = useView.getState();
  const copy = async () => {
    await navigator.clipboard.writeText(location.href);
    toast("The link to this line was copied.", "ok");
  };
  return (
    <aside aria-label="Log line" className="flex shrink-0 flex-col gap-2 border-t border-line bg-surface p-3">
      <div className="flex flex-wrap items-center gap-2 text-xs text-muted">
        <span>{formatDateTime(timeOf(line))}</span>
        <span>{line.level}</span>
        <span>{line.source}</span>
        {line.worker_id && <span>{line.worker_id}</span>}
        {line.task_id && <span>{line.task_id}</span>}
        <div className="ml-auto flex gap-1">
          <Button look="quiet" onClick={copy}>
            Copy link
          </Button>
          <Button look="quiet" onClick={() => set({ level: "", task: "", worker: "", logSearch: "", at: line.id })}>
            All ranks here
          </Button>
          <Button
            look="quiet"
            onClick={() =>
              openIncident({
                run_id: null,
                step: null,
                time: timeOf(line),
                metric: null,
                title: line.message,
                worker_id: line.worker_id,
              })
            }
          >
            Incident trail
          </Button>
          <Button look="quiet" icon aria-label="Close line" onClick={() => set({ at: "" })}>
            <X size={14} />
          </Button>
        </div>
      </div>
      <pre className="max-h-40 overflow-auto font-mono text-xs leading-5 whitespace-pre-wrap">
        {plainText(line.message)}
      </pre>
    </aside>
  );
}
