import { Menu, Moon, Search, Sun } from "lucide-react";
import { Button } from "@/components/ui/button";
import { Segmented } from "@/components/ui/segmented";
import { RANGES } from "@/lib/view-codec";
import { useOverlay } from "@/stores/overlay";
import { useTheme } from "@/stores/theme";
import { useView } from "@/stores/view";
import { ConnectionPill } from "./connection-pill";
import { RunPicker } from "./run-picker";

const RANGE_OPTIONS = RANGES.map((value) => ({ value, label: value === "all" ? "All" : value }));
const SOURCES = [
  { value: "live", label: "Live", title: "Data of the connected cluster" },
  { value: "demo", label: "Demo", title: "A recorded job, played back in this browser; nothing is sent to a server" },
] as const;

export function TopBar() {
  const range = useView((view) => view.range);
  const demo = useView((view) => view.demo);
  const { set } = useView.getState();
  const { theme, toggle } = useTheme();
  const other = theme === "light" ? "dark" : "light";
  return (
    <header className="sticky top-0 z-30 flex min-h-12 flex-wrap items-center gap-x-2 gap-y-1.5 border-b border-line bg-surface px-4 py-2 max-md:px-3">
      <Button
        look="quiet"
        icon
        className="md:hidden"
        aria-label="Menu"
        onClick={() => useOverlay.setState({ menu: true })}
      >
        <Menu size={17} />
      </Button>
      <RunPicker />
      <Segmented
        label="Timeline"
        value={range}
        options={RANGE_OPTIONS}
        onChange={(value) => set({ range: value })}
        className="max-md:order-last"
      />
      <div className="ml-auto flex items-center gap-2">
        <ConnectionPill />
        <Button look="quiet" icon aria-label={`Switch to ${other} theme`} onClick={toggle}>
          {theme === "light" ? <Moon size={15} /> : <Sun size={15} />}
        </Button>
      </div>
      <div className="flex items-center gap-2 max-md:order-last max-md:ml-auto md:order-none">
        <Segmented
          label="Source of data"
          value={demo ? "demo" : "live"}
          options={SOURCES}
          onChange={(value) => set({ demo: value === "demo", runs: null })}
        />
        <Button className="text-muted max-lg:w-8 max-lg:px-0" onClick={() => useOverlay.setState({ search: true })}>
          <Search size={14} aria-hidden="true" />
          <span className="max-lg:sr-only">Search</span>
          <kbd className="rounded border border-line px-1 font-mono text-2xs text-faint max-lg:hidden">Ctrl K</kbd>
        </Button>
      </div>
    </header>
  );
}
