import { useCatalog } from "@/stores/catalog";
import { useView } from "@/stores/view";
import type { Layout } from "./layout";

/** A dashboard outlives the runs that it was made for: says which of them are gone, and shows the rest. */
export function GoneRuns({ layout }: { layout: Layout }) {
  const { runs, whole } = useCatalog();
  const baseline = useView((view) => view.baseline);
  if (!whole) return null;
  const known = new Set(runs.map((run) => run.run_id));
  const gone = (layout.runs ?? []).filter((run) => !known.has(run));
  const words = [
    gone.length > 0 &&
      `${gone.length} of its ${layout.runs?.length} runs are gone (${gone.slice(0, 3).join(", ")}${gone.length > 3 ? ", …" : ""}).`,
    baseline && !known.has(baseline) && `The baseline ${baseline} is gone.`,
  ].filter(Boolean);
  return words.length > 0 && <p className="text-xs text-warn">{words.join(" ")}</p>;
}
