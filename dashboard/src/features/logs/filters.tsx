import { Download, Pause, Play } from "lucide-react";
import { download } from "@/components/metric/export";
import { Button } from "@/components/ui/button";
import { Input, Select } from "@/components/ui/input";
import { Segmented } from "@/components/ui/segmented";
import { matcher } from "@/lib/matcher";
import { useCluster } from "@/stores/cluster";
import { useView } from "@/stores/view";
import type { LogView } from "./log-view";

const LEVELS = [
  { value: "", label: "All" },
  { value: "info", label: "Info" },
  { value: "warn", label: "Warn" },
  { value: "error", label: "Error" },
];

function save(view: LogView): void {
  const lines: string[] = [];
  for (let i = 0; i < view.length; i += 1) lines.push(JSON.stringify(view.at(i)));
  download("strata-logs.ndjson", new Blob([lines.join("\n")], { type: "application/x-ndjson" }));
}

export function Filters({ view, paused, onPause }: { view: LogView; paused: boolean; onPause(): void }) {
  const { level, task, worker, logSearch, set } = useView();
  const tasks = useCluster((state) => state.tasks);
  const workers = useCluster((state) => state.workers);
  const folded = useCluster((state) => state.fleet.folded);
  const { problem } = matcher(logSearch);
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Input
        id="log-search"
        type="search"
        aria-label="Search log lines by regular expression"
        aria-invalid={problem !== null}
        title={problem ?? "Regular expression; press / to get here"}
        placeholder="Search messages (regex)"
        value={logSearch}
        onChange={(event) => set({ logSearch: event.target.value })}
        className="w-64 max-md:w-full"
      />
      <Segmented label="Least level" value={level} options={LEVELS} onChange={(value) => set({ level: value })} />
      <Select
        aria-label="Task"
        value={task}
        onChange={(event) => set({ task: event.target.value })}
        className="max-w-44"
      >
        <option value="">all tasks</option>
        {task && !tasks.some((one) => one.id === task) && <option>{task}</option>}
        {tasks.map((one) => (
          <option key={one.id} value={one.id}>
            {one.name}
          </option>
        ))}
      </Select>
      {folded && (
        <Input
          aria-label="Worker"
          placeholder="Worker id"
          value={worker}
          onChange={(event) => set({ worker: event.target.value.trim() })}
          className="w-44"
        />
      )}
      {!folded && (
        <Select
          aria-label="Worker"
          value={worker}
          onChange={(event) => set({ worker: event.target.value })}
          className="max-w-44"
        >
          <option value="">all workers</option>
          {worker && !workers.some((one) => one.id === worker) && <option>{worker}</option>}
          {workers.map((one) => (
            <option key={one.id}>{one.id}</option>
          ))}
        </Select>
      )}
      <div className="flex gap-2 md:ml-auto">
        <Button aria-pressed={paused} onClick={onPause} title="Space">
          {paused ? <Play size={13} /> : <Pause size={13} />} {paused ? "Resume" : "Pause"}
        </Button>
        <Button onClick={() => save(view)} disabled={view.length === 0}>
          <Download size={13} /> NDJSON
        </Button>
      </div>
    </div>
  );
}
