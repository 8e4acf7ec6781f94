/** A dashboard's layout and what can be done to it. Pure: every change is a new layout. */
import type {
  BarPanel,
  HistogramPanel,
  ImagePanel,
  LinePanel,
  MarkdownPanel,
  NumberPanel,
  ParallelPanel,
  ScatterPanel,
  TablePanel,
  Layout as WireLayout,
  Section as WireSection,
} from "@/api/wire";

export type Line = Required<LinePanel>;
export type Scatter = Required<ScatterPanel>;
export type Bar = Required<BarPanel>;
export type Parallel = Required<ParallelPanel>;
export type Figure = Required<NumberPanel>;
export type Markdown = Required<MarkdownPanel>;
export type Media = Required<HistogramPanel> | Required<ImagePanel> | Required<TablePanel>;
export type Panel = Line | Scatter | Bar | Parallel | Figure | Markdown | Media;
export type Kind = Panel["kind"];

export interface Section {
  title: string;
  folded: boolean;
  panels: Panel[];
}

export interface Layout {
  sections: Section[];
  runs: string[] | null;
  group_by: string;
  baseline: string;
}

export const GRID_COLUMNS = 12;
export const MOST_ROWS = 16;
const BOX = { title: "", w: 4, h: 4 };

/** A new panel of each kind, and what stands for a field that a saved one does not have. */
const BLANK: { [K in Kind]: Omit<Extract<Panel, { kind: K }>, "id"> } = {
  line: {
    ...BOX,
    kind: "line",
    metrics: [],
    formulas: [],
    x: "step",
    x_metric: "",
    log_x: false,
    log_y: false,
    clip: false,
    smoothing: 0,
    smoothing_kind: "ema",
  },
  scatter: { ...BOX, kind: "scatter", x: "", y: "", log_x: false, log_y: false },
  bar: { ...BOX, kind: "bar", column: "" },
  parallel: { ...BOX, w: 8, h: 5, kind: "parallel", columns: [], target: "" },
  number: { ...BOX, w: 2, h: 2, kind: "number", column: "", reduce: "newest" },
  markdown: { ...BOX, h: 3, kind: "markdown", text: "" },
  histogram: { ...BOX, kind: "histogram", key: "" },
  image: { ...BOX, kind: "image", key: "" },
  table: { ...BOX, w: 6, kind: "table", key: "" },
};

export const KINDS = Object.keys(BLANK) as Kind[];

export const KIND_NAMES: Record<Kind, string> = {
  line: "Lines",
  scatter: "Scatter",
  bar: "Bars",
  parallel: "Parallel coordinates",
  number: "Single number",
  markdown: "Markdown",
  histogram: "Histogram",
  image: "Images",
  table: "Table",
};

export function newPanel(kind: Kind, id: string): Panel {
  return { ...BLANK[kind], id } as Panel;
}

/** A saved layout with every field in its place. A kind of a newer server stays as it is, and the page says so. */
export function fromWire(wire: WireLayout): Layout {
  return {
    sections: (wire.sections ?? []).map((section) => ({
      title: section.title ?? "",
      folded: section.folded ?? false,
      panels: (section.panels ?? []).map((panel) => ({ ...BLANK[panel.kind], ...panel }) as Panel),
    })),
    runs: wire.runs ?? null,
    group_by: wire.group_by ?? "",
    baseline: wire.baseline ?? "",
  };
}

export function toWire(layout: Layout): WireLayout {
  return { ...layout, sections: layout.sections as WireSection[] };
}

export function panelsOf(layout: Layout): Panel[] {
  return layout.sections.flatMap((section) => section.panels);
}

function mapSections(layout: Layout, change: (section: Section, place: number) => Section): Layout {
  return { ...layout, sections: layout.sections.map(change) };
}

export function changeSection(layout: Layout, at: number, change: Partial<Section>): Layout {
  return mapSections(layout, (section, place) => (place === at ? { ...section, ...change } : section));
}

export function addSection(layout: Layout): Layout {
  const title = `Section ${layout.sections.length + 1}`;
  return { ...layout, sections: [...layout.sections, { title, folded: false, panels: [] }] };
}

/** Its panels go to the section before it, or after it when it is the first; the last section only when it is empty. */
export function removeSection(layout: Layout, at: number): Layout {
  const gone = layout.sections[at];
  if (!gone) return layout;
  const left = layout.sections.filter((_, place) => place !== at);
  if (left.length === 0) return gone.panels.length > 0 ? layout : { ...layout, sections: [] };
  const heir = Math.max(0, at - 1);
  const panels = (own: Panel[]) => (at === 0 ? [...gone.panels, ...own] : [...own, ...gone.panels]);
  return { ...layout, sections: left.map((one, i) => (i === heir ? { ...one, panels: panels(one.panels) } : one)) };
}

/** To the end of a section; into a new one when there is none. */
export function addPanel(layout: Layout, panel: Panel, section = 0): Layout {
  const roomy = layout.sections.length > 0 ? layout : addSection(layout);
  return mapSections(roomy, (one, place) => (place === section ? { ...one, panels: [...one.panels, panel] } : one));
}

export function changePanel(layout: Layout, id: string, change: Partial<Panel>): Layout {
  return mapSections(layout, (section) => ({
    ...section,
    panels: section.panels.map((panel) => (panel.id === id ? ({ ...panel, ...change } as Panel) : panel)),
  }));
}

export function removePanel(layout: Layout, id: string): Layout {
  return mapSections(layout, (section) => ({ ...section, panels: section.panels.filter((one) => one.id !== id) }));
}

export interface Place {
  section: number;
  index: number;
}

export function placeOf(layout: Layout, id: string): Place | null {
  for (const [section, { panels }] of layout.sections.entries()) {
    const index = panels.findIndex((panel) => panel.id === id);
    if (index >= 0) return { section, index };
  }
  return null;
}

/** Puts a panel before the one that stands at the place now. */
export function movePanel(layout: Layout, id: string, to: Place): Layout {
  const from = placeOf(layout, id);
  const panel = from && layout.sections[from.section]?.panels[from.index];
  if (!from || !panel) return layout;
  const shift = from.section === to.section && from.index < to.index ? 1 : 0;
  return mapSections(removePanel(layout, id), (section, place) => {
    if (place !== to.section) return section;
    const panels = [...section.panels];
    panels.splice(to.index - shift, 0, panel);
    return { ...section, panels };
  });
}

/** One place on or back in reading order, over the edges of sections. */
export function nudgePanel(layout: Layout, id: string, by: 1 | -1): Layout {
  const from = placeOf(layout, id);
  if (!from) return layout;
  const index = from.index + by;
  const own = layout.sections[from.section]?.panels.length ?? 0;
  if (index >= 0 && index < own) return movePanel(layout, id, { ...from, index: by > 0 ? index + 1 : index });
  const section = from.section + by;
  const next = layout.sections[section];
  if (!next) return layout;
  return movePanel(layout, id, { section, index: by > 0 ? 0 : next.panels.length });
}

export function resizePanel(layout: Layout, id: string, w: number, h: number): Layout {
  const bound = (value: number, most: number) => Math.min(most, Math.max(1, Math.round(value)));
  return changePanel(layout, id, { w: bound(w, GRID_COLUMNS), h: bound(h, MOST_ROWS) });
}

/** An id that no panel of the layout has. */
export function freeId(layout: Layout): string {
  const taken = new Set(panelsOf(layout).map((panel) => panel.id));
  let number = taken.size + 1;
  while (taken.has(`p${number}`)) number += 1;
  return `p${number}`;
}
