import { useEffect, useState } from "react";
import { Input } from "@/components/ui/input";
import { useView } from "@/stores/view";

const TYPING_MS = 250;

/** The server reads the query and says where it cannot; the page asks when the typing rests. */
export function RunFilter({ error }: { error: string | null }) {
  const wanted = useView((state) => state.runFilter);
  const [text, setText] = useState(wanted);
  useEffect(() => setText(wanted), [wanted]);
  useEffect(() => {
    const timer = setTimeout(() => useView.getState().set({ runFilter: text }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <Input
      type="search"
      aria-label="Filter runs"
      aria-invalid={error !== null}
      aria-describedby="run-filter-note"
      placeholder="lr > 1e-4 and tag:ablation"
      title="Words, or comparisons: tag:x, group:x, state:failed, lr > 1e-4, loss.min < 0.5, archived:yes; and, or, not, ( )"
      value={text}
      spellCheck={false}
      onChange={(event) => setText(event.target.value)}
      className="w-80 font-mono max-sm:w-[calc(100vw-8.5rem)]"
    />
  );
}
