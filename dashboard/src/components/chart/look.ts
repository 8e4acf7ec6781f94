/** Colours of a chart, read from the theme's tokens when it is built. */

import type { Line } from "@/data/plot";
import { runStyles, styleAt } from "@/lib/colors";
import type { Theme } from "@/stores/theme";

export interface Ink {
  axis: string;
  grid: string;
  bad: string;
  warn: string;
  surface: string;
  fg: string;
}

let read: { theme: Theme; ink: Ink } | null = null;

/** Reading styles makes the browser compute them, so once per theme and not per chart. */
export function readInk(theme: Theme): Ink {
  if (read?.theme !== theme) read = { theme, ink: tokens() };
  return read.ink;
}

function tokens(): Ink {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(name).trim();
  return {
    axis: token("--faint"),
    grid: token("--line"),
    bad: token("--bad"),
    warn: token("--warn"),
    surface: token("--surface"),
    fg: token("--fg"),
  };
}

export interface LineLook {
  color: string;
  dash: number[];
  /** Drawn behind the others: what it shows was superseded. */
  muted: boolean;
}

/** Runs have their own colour; the ranks of a single run on show are told apart by theirs. */
export function lineLooks(lines: readonly Line[], theme: Theme): LineLook[] {
  const oneRun = new Set(lines.map((line) => line.run)).size === 1;
  return lines.map((line) => {
    const style = oneRun && line.rank !== null ? styleAt(line.rank) : runStyles.of(line.run);
    const muted = line.attempt !== null;
    return { color: style[theme], dash: muted ? [2, 3] : [...style.dash], muted };
  });
}

/** `#rrggbb` with an alpha. */
export function fade(color: string, alpha: number): string {
  return `${color}${Math.round(alpha * 255)
    .toString(16)
    .padStart(2, "0")}`;
}
