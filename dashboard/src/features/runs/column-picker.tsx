import { Columns3 } from "lucide-react";
import { useState } from "react";
import { Popover } from "@/components/ui/popover";
import { useView } from "@/stores/view";

const LISTED = 200;

interface Props {
  names: readonly string[];
  chosen: readonly string[];
}

/** Which config values, summary values and metrics stand in the table; kept in the address. */
export function ColumnPicker({ names, chosen }: Props) {
  const [search, setSearch] = useState("");
  const found = names.filter((name) => name.toLowerCase().includes(search.toLowerCase()));
  const listed = [...chosen, ...found.filter((name) => !chosen.includes(name))].slice(0, LISTED);
  const set = (runColumns: readonly string[] | null) => useView.getState().set({ runColumns });
  const toggle = (name: string) =>
    set(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]);
  return (
    <Popover
      label="Choose columns"
      align="right"
      trigger={
        <>
          <Columns3 size={13} aria-hidden="true" /> Columns
        </>
      }
    >
      <div className="w-72 max-sm:w-64">
        <input
          aria-label="Search columns"
          placeholder="Config, summary, metric"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
          className="h-9 w-full border-b border-line bg-transparent px-3 text-sm outline-none"
        />
        <ul className="max-h-72 overflow-y-auto py-1">
          {listed.map((name) => (
            <li key={name}>
              <label className="flex h-8 cursor-pointer items-center gap-2 px-3 font-mono text-xs hover:bg-hover">
                <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
                <span className="truncate">{name}</span>
              </label>
            </li>
          ))}
          {listed.length === 0 && <li className="px-3 py-2 text-muted">Nothing of that name was logged.</li>}
        </ul>
        <div className="flex gap-3 border-t border-line px-3 py-2 text-xs font-medium text-accent">
          <button type="button" onClick={() => set([])}>
            None
          </button>
          <button type="button" className="ml-auto" onClick={() => set(null)}>
            Loss only
          </button>
        </div>
      </div>
    </Popover>
  );
}
