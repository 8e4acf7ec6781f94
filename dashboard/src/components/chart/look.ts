/** Colours of a chart, read from the theme's tokens when it is built. */

import { isAside, type Line } from "@/data/line";
import { dashAt, groupStyles, type RunStyle, runStyles, styleAt } from "@/lib/colors";
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
  /** Drawn above the others: they are compared with it. */
  bold: boolean;
}

const BASELINE: Record<Theme, string> = { light: "#1f2328", dark: "#f0f3f6" };

/**
 * Runs and groups have their own colour. Where only one is on show, its ranks or its metrics are told apart by theirs; several
 * metrics of several runs by dashes.
 */
export function lineLooks(lines: readonly Line[], theme: Theme, baseline = ""): LineLook[] {
  const owners = new Set(lines.map(ownerOf));
  const metrics = [...new Set(lines.map((line) => line.metric))];
  return lines.map((line) => {
    const place = metrics.indexOf(line.metric);
    const dash = metrics.length > 1 && owners.size > 1 ? dashAt(place) : null;
    const muted = isAside(line);
    if (line.group === null && line.run === baseline && !muted) {
      return { color: BASELINE[theme], dash: [...(dash ?? [])], muted, bold: true };
    }
    const style = styleOf(line, owners.size === 1, metrics.length > 1, place);
    return { color: style[theme], dash: muted ? [2, 3] : [...(dash ?? style.dash)], muted, bold: false };
  });
}

function styleOf(line: Line, alone: boolean, several: boolean, place: number): RunStyle {
  if (line.group) return alone && several ? styleAt(place) : groupStyles.of(line.group.label);
  if (alone && line.rank !== null) return styleAt(line.rank);
  return alone && several ? styleAt(place) : runStyles.of(line.run);
}

function ownerOf(line: Line): string {
  return line.group ? `group ${line.group.label}` : line.run;
}

/** `#rrggbb` with an alpha. */
export function fade(color: string, alpha: number): string {
  return `${color}${Math.round(alpha * 255)
    .toString(16)
    .padStart(2, "0")}`;
}
