/** The rank × step picture: each cell is a rank's value relative to the median of all ranks at that step. */
import type { Series } from "@/data/series";

export interface Heat {
  ranks: number[];
  /** Last step of each column. */
  steps: number[];
  /** value[row][column], null where nothing was logged. */
  value: (number | null)[][];
  /** ratio to the column's median */
  ratio: (number | null)[][];
}

export function buildHeat(series: readonly Series[], columns: number, window: number): Heat {
  const ranks = [...new Set(series.map((one) => one.head.rank))].sort((a, b) => a - b);
  let last = 0;
  for (const one of series) last = Math.max(last, one.steps.at(-1) ?? 0);
  const first = Math.max(0, last - window);
  // Never finer than the points at hand, or the picture would be striped with holes.
  const width = Math.max(1, Math.ceil((last - first) / columns), ...series.map((one) => spacing(one, first)));
  const count = Math.max(1, Math.ceil((last - first) / width));
  const sums = ranks.map(() => new Float64Array(count));
  const counts = ranks.map(() => new Float64Array(count));
  for (const one of series) {
    const row = ranks.indexOf(one.head.rank);
    for (let i = one.length - 1; i >= 0; i -= 1) {
      const step = one.steps.at(i) ?? 0;
      const value = one.values.at(i);
      if (step <= first || value === null || value === undefined) continue;
      const column = Math.min(count - 1, Math.floor((step - first - 1) / width));
      const [sum, seen] = [sums[row], counts[row]];
      if (!sum || !seen) continue;
      sum[column] = (sum[column] ?? 0) + value;
      seen[column] = (seen[column] ?? 0) + 1;
    }
  }
  const value = ranks.map((_, row) =>
    Array.from({ length: count }, (__, column) => {
      const seen = counts[row]?.[column] ?? 0;
      return seen > 0 ? (sums[row]?.[column] ?? 0) / seen : null;
    }),
  );
  const medians = Array.from({ length: count }, (_, column) => median(value.map((row) => row[column] ?? null)));
  const ratio = value.map((row) =>
    row.map((cell, column) => (cell === null || !medians[column] ? null : cell / medians[column])),
  );
  return { ranks, steps: Array.from({ length: count }, (_, column) => first + (column + 1) * width), value, ratio };
}

/** The gap that covers most of the window: history is coarser than what arrives live, and both must fill their columns. */
function spacing(series: Series, first: number): number {
  const gaps: number[] = [];
  for (let i = 1; i < series.length; i += 1) {
    const gap = (series.steps.at(i) ?? 0) - (series.steps.at(i - 1) ?? 0);
    if ((series.steps.at(i - 1) ?? 0) > first && gap > 0) gaps.push(gap);
  }
  gaps.sort((x, y) => x - y);
  const half = gaps.reduce((sum, gap) => sum + gap, 0) / 2;
  let covered = 0;
  for (const gap of gaps) {
    covered += gap;
    if (covered >= half) return gap;
  }
  return 1;
}

const RECENT_SHARE = 0.1;
const RECENT_LEAST = 3;

/** Who is slow now, in words, from the newest tenth of the picture; or that nobody stands out. */
export function describeHeat({ ranks, ratio, steps }: Heat): string {
  const from = Math.max(0, steps.length - Math.max(RECENT_LEAST, Math.ceil(steps.length * RECENT_SHARE)));
  const columns = steps.length - from;
  const recent = ratio.map((row) => row.slice(from));
  const wins = ranks.map(() => 0);
  for (let column = 0; column < columns; column += 1) {
    let top = -1;
    recent.forEach((row, i) => {
      if ((row[column] ?? 0) > (recent[top]?.[column] ?? 0)) top = i;
    });
    if (top >= 0) wins[top] = (wins[top] ?? 0) + 1;
  }
  const worst = wins.indexOf(Math.max(...wins));
  const share = (wins[worst] ?? 0) / Math.max(1, columns);
  const known = (recent[worst] ?? []).filter((value): value is number => value !== null);
  const mean = known.reduce((sum, value) => sum + value, 0) / Math.max(1, known.length);
  if (ranks.length < 2 || share < 0.5 || mean < 1.1) return "No rank stands out now.";
  const span = (steps.at(-1) ?? 0) - (steps[from - 1] ?? 0);
  return `Over the last ${span} steps rank ${ranks[worst]} was highest ${Math.round(share * 100)}% of the time, ${mean.toFixed(2)}× the median on average.`;
}

export function median(values: readonly (number | null)[]): number | null {
  const known = values.filter((value): value is number => value !== null).sort((a, b) => a - b);
  if (known.length === 0) return null;
  const middle = known.length >> 1;
  return known.length % 2 === 1 ? (known[middle] ?? null) : ((known[middle - 1] ?? 0) + (known[middle] ?? 0)) / 2;
}

/** Blue = faster, surface = as the median, orange = slower; clipped at half and double. */
export function heatColor(ratio: number | null, dark: boolean): string {
  return ratio === null ? "transparent" : `rgb(${heatRgb(ratio, dark).join(" ")})`;
}

export function heatRgb(ratio: number, dark: boolean): [number, number, number] {
  const t = Math.max(-1, Math.min(1, Math.log2(Math.max(ratio, 1e-9))));
  const strength = Math.abs(t) ** 0.7;
  const [r, g, b] = t > 0 ? (dark ? [240, 140, 60] : [205, 90, 15]) : dark ? [90, 150, 245] : [40, 100, 210];
  const [br, bg, bb] = dark ? [32, 37, 44] : [233, 236, 240];
  const mix = (from = 0, to = 0) => Math.round(from + (to - from) * strength);
  return [mix(br, r), mix(bg, g), mix(bb, b)];
}
