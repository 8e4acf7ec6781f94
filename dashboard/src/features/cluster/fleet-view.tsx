import { useState } from "react";
import type { Fleet } from "@/api/wire";
import { FleetMap } from "@/components/ui/fleet-map";
import { Input, Select } from "@/components/ui/input";
import { Panel } from "@/components/ui/panel";
import { StatusMark } from "@/components/ui/status";
import { Stragglers } from "@/components/ui/stragglers";
import { FLEET_STATES, type FleetState } from "@/lib/fleet";
import { formatCount } from "@/lib/format";
import { FleetTable } from "./fleet-table";

const STATES = Object.values(FLEET_STATES);
/** So many workers that nobody reads a row of each: a map, who is slow, and a table that asks for what is on screen. */
export function FleetView({ fleet }: { fleet: Fleet }) {
  const [status, setStatus] = useState<FleetState | "">("");
  const [text, setText] = useState("");
  return (
    <>
      <Panel
        title="Fleet"
        note={`${formatCount(fleet.total)} workers, hosts side by side`}
        actions={
          <span aria-hidden="true" className="flex flex-wrap gap-x-3 text-2xs text-muted">
            {STATES.map((state) => (
              <span key={state} className="inline-flex items-center gap-1">
                <StatusMark status={state} /> {state}
              </span>
            ))}
          </span>
        }
      >
        <FleetMap groups={fleet.groups} only={status} />
      </Panel>
      <Panel title="Stragglers" flush>
        <Stragglers groups={fleet.groups} />
      </Panel>
      <Panel
        title="Workers"
        flush
        actions={
          <div className="flex flex-wrap gap-2">
            <Select
              aria-label="State"
              value={status}
              onChange={(event) => setStatus(event.target.value as FleetState | "")}
            >
              <option value="">all states</option>
              {STATES.map((state) => (
                <option key={state}>{state}</option>
              ))}
            </Select>
            <Input
              type="search"
              aria-label="Filter workers"
              placeholder="Filter by id, host, status, task"
              value={text}
              onChange={(event) => setText(event.target.value)}
              className="w-56"
            />
          </div>
        }
      >
        <FleetTable key={`${status} ${text}`} status={status} text={text} />
      </Panel>
    </>
  );
}
