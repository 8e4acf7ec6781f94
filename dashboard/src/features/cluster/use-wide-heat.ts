import { useEffect, useState } from "react";
import { requests } from "@/data/source";
import { WideHeat } from "./wide-heat";

const EVERY_MS = 500;

interface Asked {
  run: string;
  metric: string;
  rows: number;
  ranks: readonly [number, number] | null;
}

/** Asks for what changed twice a second, while the page is looked at. */
export function useWideHeat({ run, metric, rows, ranks }: Asked): { heat: WideHeat | null; error: unknown } {
  const [shown, setShown] = useState<{ heat: WideHeat | null; error: unknown }>({ heat: null, error: null });
  const [first, last] = ranks ?? [];
  useEffect(() => {
    const heat = new WideHeat();
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      if (!document.hidden) {
        try {
          const range = first === undefined || last === undefined ? {} : { first_rank: first, last_rank: last };
          const answer = await requests().heat(run, { metric, rows, ...range, ...heat.seen }, abort.signal);
          const isNew = heat.take(answer);
          setShown((old) => (isNew || old.error !== null ? { heat, error: null } : old));
        } catch (error) {
          if (!abort.signal.aborted) setShown((old) => ({ ...old, error }));
        }
      }
      if (!abort.signal.aborted) timer = setTimeout(ask, EVERY_MS);
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [run, metric, rows, first, last]);
  return shown;
}
