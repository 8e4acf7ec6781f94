import { Dialog } from "@/components/ui/dialog";
import { useOverlay } from "@/stores/overlay";
import { ENTRIES } from "./navigation";

const GROUPS: readonly { title: string; keys: readonly (readonly [string, string])[] }[] = [
  {
    title: "Everywhere",
    keys: [
      ["Ctrl K", "search"],
      ["?", "this help"],
      ["Esc", "close what is open"],
    ],
  },
  { title: "Go to", keys: ENTRIES.map((entry) => [`g ${entry.key}`, entry.label] as const) },
  {
    title: "Metrics",
    keys: [
      ["/", "search metrics"],
      ["a · n", "all runs · none"],
      ["l", "log y"],
      ["x", "next x axis"],
      ["s", "more smoothing"],
      ["r", "reset zoom"],
      ["Shift drag", "zoom into a box"],
      ["Shift wheel", "zoom around the pointer"],
      ["Space", "pause and resume"],
      ["← →", "move the crosshair, or to the next metric in full view"],
      ["Enter", "incident trail at the crosshair"],
    ],
  },
  {
    title: "Dashboards, on a panel's grip",
    keys: [
      ["← → ↑ ↓", "move the panel"],
      ["Shift ← →", "narrower, wider"],
      ["Shift ↑ ↓", "lower, higher"],
    ],
  },
  {
    title: "Logs",
    keys: [
      ["/", "search messages"],
      ["Space", "pause and resume"],
    ],
  },
];

export function Help() {
  return (
    <Dialog title="Keyboard" onClose={() => useOverlay.setState({ help: false })} className="max-w-2xl!">
      <div className="grid grid-cols-2 gap-x-8 gap-y-5 p-4 max-sm:grid-cols-1">
        {GROUPS.map((group) => (
          <section key={group.title}>
            <h3 className="mb-1.5 text-xs font-semibold">{group.title}</h3>
            <dl className="grid grid-cols-[84px_minmax(0,1fr)] gap-y-1 text-xs">
              {group.keys.map(([key, what]) => (
                <div key={key} className="contents">
                  <dt>
                    <kbd className="rounded border border-line-strong bg-sunken px-1.5 font-mono text-2xs">{key}</kbd>
                  </dt>
                  <dd className="text-muted">{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
