/** Keys that work on every page: Ctrl-K, ?, and g followed by a page's letter. */
import { isTyping } from "@/lib/keys";
import { pathOf } from "@/lib/routes";
import { useOverlay } from "@/stores/overlay";
import { addressOf } from "@/stores/view";
import { ENTRIES } from "./navigation";

const CHORD_MS = 1200;

export function listenKeys(navigate: (to: string) => void): () => void {
  let chordAt = -Infinity;
  const onKey = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      useOverlay.setState((old) => ({ search: !old.search }));
      return;
    }
    if (isTyping(event) || document.querySelector("dialog[open]")) return;
    if (event.key === "?") useOverlay.setState({ help: true });
    if (event.key === "g") {
      chordAt = event.timeStamp;
      return;
    }
    const entry = event.timeStamp - chordAt < CHORD_MS ? ENTRIES.find((one) => one.key === event.key) : undefined;
    chordAt = -Infinity;
    if (!entry) return;
    // The page below must not take the same letter for its own.
    event.stopImmediatePropagation();
    navigate(addressOf(pathOf(entry.page)));
  };
  addEventListener("keydown", onKey, { capture: true });
  return () => removeEventListener("keydown", onKey, { capture: true });
}
