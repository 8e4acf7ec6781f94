/** window.__strata: what browser tests and benchmarks read. Read only; nothing in the product uses it. */
import { frameLoop } from "@/data/frame";
import { pointLoader } from "@/data/loader";
import { logRing } from "@/data/log-ring";
import { outlineLoader } from "@/data/outline-loader";
import { seriesStore } from "@/data/series-store";
import { useLink } from "@/stores/link";

export interface Probe {
  /** Chart draws, points received and log lines since the page was opened, and what of series is still awaited. */
  counters(): { draws: number; received: number; orphans: number; logs: number; waiting: number };
  link(): string;
  series(
    run: string,
    metric: string,
    rank?: number,
  ): { steps: number[]; values: (number | null)[]; total: number } | null;
}

declare global {
  interface Window {
    __strata?: Probe;
  }
}

export function installProbe(): void {
  window.__strata = {
    counters: () => ({
      draws: frameLoop.draws,
      received: seriesStore.received,
      orphans: seriesStore.orphans,
      logs: logRing.next - logRing.first,
      waiting: pointLoader.waiting + outlineLoader.waiting,
    }),
    link: () => useLink.getState().state,
    series: (run, metric, rank = 0) => {
      const found = seriesStore.of(metric).find((one) => one.head.run_id === run && one.head.rank === rank);
      return found ? { steps: [...found.steps], values: [...found.values], total: found.totalPoints } : null;
    },
  };
}
