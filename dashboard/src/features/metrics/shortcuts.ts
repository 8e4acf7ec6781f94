/** Keys of the metrics page. Never inside an input, never with a modifier. */
import { isTyping } from "@/lib/keys";
import { X_KINDS } from "@/lib/view-codec";
import { useCatalog } from "@/stores/catalog";
import { useView } from "@/stores/view";
import { togglePause } from "./toolbar";

const SMOOTHING = [0, 0.6, 0.9, 0.97];

export function shortcut(event: KeyboardEvent): void {
  if (isTyping(event)) return;
  const { x, logY, smoothing, set } = useView.getState();
  const actions: Record<string, () => void> = {
    "/": () => document.getElementById("metric-search")?.focus(),
    l: () => set({ logY: !logY }),
    x: () => set({ x: X_KINDS[(X_KINDS.indexOf(x) + 1) % X_KINDS.length] ?? "step", zoom: null }),
    s: () => set({ smoothing: SMOOTHING.find((value) => value > smoothing) ?? 0 }),
    r: () => set({ zoom: null }),
    a: () => set({ runs: useCatalog.getState().runs.map((run) => run.run_id) }),
    n: () => set({ runs: [] }),
    " ": togglePause,
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}
