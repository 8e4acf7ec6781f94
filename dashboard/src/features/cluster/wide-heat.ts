/** The server's picture of thousands of ranks, kept up to date by answers that hold what changed. */
import type { Heat } from "@/api/wire";

type Column = Heat["columns"][number];

const RECENT_SHARE = 0.1;
const RECENT_LEAST = 3;
const STANDS_OUT = 1.1;

export class WideHeat {
  #columns = new Map<number, Column>();
  last: Heat | null = null;

  /** What the next question should name. */
  get seen(): { picture: string; version: number } | undefined {
    return this.last ? { picture: this.last.picture, version: this.last.version } : undefined;
  }

  /** Whether anything is new. */
  take(answer: Heat): boolean {
    const before = this.last;
    const same = before?.picture === answer.picture && before.metric === answer.metric;
    if (!same) this.#columns = new Map();
    this.last = answer;
    for (const column of answer.columns) this.#columns.set(column.step, column);
    const wanted = new Set(answer.steps);
    for (const step of this.#columns.keys()) if (!wanted.has(step)) this.#columns.delete(step);
    return !same || answer.version !== before.version;
  }

  /** Oldest first. */
  columns(): Column[] {
    return (this.last?.steps ?? []).flatMap((step) => this.#columns.get(step) ?? []);
  }
}

/** Who is highest now, in words, from the newest tenth of the picture; or that nobody stands out. */
export function describeWide(columns: readonly Column[]): string {
  const recent = columns.slice(-Math.max(RECENT_LEAST, Math.ceil(columns.length * RECENT_SHARE)));
  const wins = new Map<number, number[]>();
  for (const { top_rank: rank, top_ratio: ratio } of recent) {
    if (rank !== null && ratio !== null) wins.set(rank, [...(wins.get(rank) ?? []), ratio]);
  }
  const [best] = [...wins].sort(([, a], [, b]) => b.length - a.length);
  if (!best) return "No rank stands out now.";
  const [rank, ratios] = best;
  const share = ratios.length / recent.length;
  const mean = ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
  if (share < 0.5 || mean < STANDS_OUT) return "No rank stands out now.";
  return `In ${Math.round(share * 100)}% of the last ${recent.length} logged steps rank ${rank} was highest, ${mean.toFixed(2)}× the median on average.`;
}

/** "rank 7", or "ranks 32 to 63". */
export function ranksText(heat: Heat, row: number): string {
  const [first, last] = [heat.first_ranks[row], heat.last_ranks[row]];
  return first === last ? `rank ${first}` : `ranks ${first} to ${last}`;
}
