import { MediaCard } from "@/components/media/media-card";
import { useShownRuns } from "@/hooks/runs";
import type { Media } from "./layout";
import { Note } from "./note";
import { SIDE_BY_SIDE, useMediaKeys } from "./use-media-keys";

/** Histograms, images and tables that runs logged under the panel's key, side by side. */
export function MediaPanel({ panel, title }: { panel: Media; title: string }) {
  const { keys, loaded, error } = useMediaKeys(panel.kind, panel.key);
  const shown = useShownRuns().length;
  const found = keys.find((key) => key.metric === panel.key);
  if (!panel.key) return <Note>Choose the key of what was logged.</Note>;
  if (error && !loaded) return <Note bad>{error.message}</Note>;
  if (!found) return <Note>{loaded ? `No run on show logged ${panel.kind}s as “${panel.key}”.` : "Loading…"}</Note>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section aria-label={title} tabIndex={0} className="h-full overflow-y-auto px-2 pb-2">
      <MediaCard key={found.runs.join(" ")} {...found} kind={panel.kind} live bare />
      {shown > SIDE_BY_SIDE && (
        <p className="pt-1 text-2xs text-muted">
          of the first {SIDE_BY_SIDE} of {shown} runs on show
        </p>
      )}
    </section>
  );
}
