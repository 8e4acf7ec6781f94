import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown } from "lucide-react";
import { useRef, useState } from "react";
import { cx } from "@/lib/cx";
import { Popover } from "./popover";

export interface Choice {
  value: string;
  label: string;
}

interface Props {
  label: string;
  /** What stands on the button when nothing is chosen. */
  nothing: string;
  choices: readonly Choice[];
  chosen: readonly string[];
  onChange(chosen: string[]): void;
  /** One at most: a click chooses and closes. */
  single?: boolean;
  align?: "left" | "right";
}

const ROW_PX = 30;

export function toChoices(names: readonly string[]): Choice[] {
  return names.map((name) => ({ value: name, label: name }));
}

/** Chooses among any number of names: only the rows in sight are in the page. */
export function NamePicker({ label, nothing, choices, chosen, onChange, single = false, align }: Props) {
  const first = choices.find((one) => one.value === chosen[0])?.label ?? chosen[0];
  const text = chosen.length === 0 ? nothing : chosen.length === 1 ? first : `${chosen.length} chosen`;
  return (
    <Popover
      label={`${label}: ${text}`}
      {...(align && { align })}
      triggerClassName={cx("max-w-56 min-w-0 shrink", chosen.length > 0 && "border-accent! text-accent")}
      trigger={
        <>
          <span className="truncate">{chosen.length === 0 ? nothing : `${label}: ${text}`}</span>
          <ChevronDown size={13} className="shrink-0 text-faint" aria-hidden="true" />
        </>
      }
    >
      {(close) => (
        <NameList
          {...{ label, choices, chosen, single }}
          onChange={(next) => {
            onChange(next);
            if (single) close();
          }}
        />
      )}
    </Popover>
  );
}

type ListProps = Pick<Props, "label" | "choices" | "chosen" | "onChange"> & { single: boolean };

/** Those that are chosen stand first, also when nobody knows them any more. */
export function NameList({ label, choices, chosen, single, onChange }: ListProps) {
  const [search, setSearch] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const needle = search.toLowerCase();
  const known = new Map(choices.map((one) => [one.value, one]));
  const rest = choices.filter((one) => !chosen.includes(one.value) && one.label.toLowerCase().includes(needle));
  const rows = [...chosen.map((value) => known.get(value) ?? { value, label: `${value} (gone)` }), ...rest];
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: 10,
  });
  const toggle = (value: string) => {
    if (chosen.includes(value)) onChange(chosen.filter((other) => other !== value));
    else onChange(single ? [value] : [...chosen, value]);
  };
  return (
    <div className="w-80 max-sm:w-64">
      <input
        aria-label={`Search: ${label}`}
        placeholder={`Search ${choices.length.toLocaleString("en-US")}`}
        value={search}
        onChange={(event) => setSearch(event.target.value)}
        className="h-9 w-full border-b border-line bg-transparent px-3 text-sm outline-none"
      />
      <div ref={box} className="max-h-64 overflow-y-auto py-1">
        <fieldset aria-label={label} className="relative" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start }) => {
            const row = rows[index];
            return (
              row && (
                <label
                  key={row.value}
                  title={row.label}
                  style={{ transform: `translateY(${start}px)`, height: ROW_PX }}
                  className="absolute inset-x-0 flex cursor-pointer items-center gap-2 px-3 font-mono text-xs hover:bg-hover"
                >
                  <input type="checkbox" checked={chosen.includes(row.value)} onChange={() => toggle(row.value)} />
                  <span className="truncate">{row.label}</span>
                </label>
              )
            );
          })}
        </fieldset>
        {rows.length === 0 && (
          <p className="px-3 py-2 text-xs text-muted">{search ? "No name matches." : "There is nothing to choose."}</p>
        )}
      </div>
    </div>
  );
}
