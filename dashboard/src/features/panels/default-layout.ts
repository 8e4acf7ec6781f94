/** A first dashboard, made from what the runs on show have logged. Pure. */
import { headlines, sectionOf, sortByInterest, tabOf } from "@/lib/metric-tabs";
import { type Layout, newPanel, type Panel } from "./layout";

const HEADLINES = 3;
const SECTIONS = 5;
const PER_SECTION = 9;
const CONFIGS = 4;

/**
 * Figures first, then what tells how configs did, then a chart per metric. `columns` are the names of the run table. A pair such as
 * train/loss and val/loss shares a chart.
 */
export function defaultLayout(metrics: readonly string[], columns: readonly string[]): Layout {
  const lead = headlines(metrics, HEADLINES);
  const target =
    metrics.find((name) => /^val.*loss/.test(name)) ?? metrics.find((name) => /loss/.test(name)) ?? lead[0];
  const configs = columns.filter((name) => name.startsWith("config.")).slice(0, CONFIGS);
  const empty: Layout = { sections: [], runs: null, group_by: "", baseline: "" };
  if (target === undefined) return empty;
  let id = 0;
  const panel = (kind: Panel["kind"], change: Partial<Panel>): Panel => {
    id += 1;
    return { ...newPanel(kind, `p${id}`), ...change } as Panel;
  };
  const overview: Panel[] = lead.map((name) => panel("number", { w: 4, column: `${name}.last` }));
  if (configs.length > 0) {
    overview.push(panel("scatter", { w: 5, h: 5, x: configs[0] ?? "", y: `${target}.min` } as Partial<Panel>));
    if (configs.length > 1) overview.push(panel("parallel", { w: 7, columns: configs, target: `${target}.min` }));
  }
  const charted = chartSections(metrics).map(({ title, charts }) => ({
    title,
    folded: false,
    panels: charts.map((names) => panel("line", { metrics: names })),
  }));
  return { ...empty, sections: [{ title: "At a glance", folded: false, panels: overview }, ...charted] };
}

interface Charts {
  title: string;
  charts: string[][];
}

function chartSections(metrics: readonly string[]): Charts[] {
  const training = sortByInterest(metrics.filter((name) => tabOf(name) === "training" || tabOf(name) === "model"));
  const sections = new Map<string, string[][]>();
  const taken = new Set<string>();
  for (const name of training) {
    if (taken.has(name)) continue;
    const pair = partner(name, training);
    for (const one of [name, ...pair]) taken.add(one);
    const title = pair.length > 0 ? "Train and validation" : sectionOf(name);
    sections.set(title, [...(sections.get(title) ?? []), [name, ...pair].sort()]);
  }
  return [...sections].slice(0, SECTIONS).map(([title, charts]) => ({ title, charts: charts.slice(0, PER_SECTION) }));
}

/** val/x or eval/x of train/x, whichever was heard of first. */
function partner(name: string, all: readonly string[]): string[] {
  const found = /^(train|val|valid|eval|test)\/(.+)$/.exec(name);
  if (!found) return [];
  return all.filter(
    (other) => other !== name && /^(train|val|valid|eval|test)\//.test(other) && other.endsWith(`/${found[2]}`),
  );
}
