/** View state ↔ query string: short keys, defaults left out, unknown or broken values fall back to the default. */
import { SMOOTHING_KINDS, type SmoothingKind } from "./smoothing";

export const RANGES = ["1h", "6h", "24h", "7d", "all"] as const;
export const X_KINDS = ["step", "rel", "wall"] as const;
export const RANK_MODES = ["mean", "all"] as const;
export const ATTEMPT_MODES = ["newest", "all"] as const;
export const METRIC_TABS = ["training", "model", "system", "checkpoints", "progress"] as const;
/** Of the metrics page: media have names of their own, which no rule sorts. */
export const PAGE_TABS = [...METRIC_TABS, "media"] as const;
export const CLUSTER_TABS = ["workers", "shards", "barriers", "heatmap"] as const;
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

export type Range = (typeof RANGES)[number];
export type XKind = (typeof X_KINDS)[number];
export type RankMode = (typeof RANK_MODES)[number];
export type AttemptMode = (typeof ATTEMPT_MODES)[number];
export type MetricTab = (typeof METRIC_TABS)[number];
export type PageTab = (typeof PAGE_TABS)[number];
export type ClusterTab = (typeof CLUSTER_TABS)[number];

export interface View {
  demo: boolean;
  range: Range;
  /** null = the newest runs; a list = exactly these. */
  runs: string[] | null;
  x: XKind;
  logX: boolean;
  logY: boolean;
  /** The y axis leaves out the most extreme points. */
  clip: boolean;
  smoothing: number;
  smoothingKind: SmoothingKind;
  /** Charts that are computed from metrics, beside those that were logged. */
  formulas: readonly string[];
  /** A column of the run table by whose values runs are drawn as one line; empty: each has its own. */
  groupBy: string;
  /** A run that every chart shows and that others are compared with; empty: none. */
  baseline: string;
  ranks: RankMode;
  /** Of steps that were done again: the newest attempt's points, or also those of earlier ones. */
  attempts: AttemptMode;
  tab: PageTab;
  search: string;
  focus: string;
  /** Visible part of the x axis, in the axis' own unit. */
  zoom: readonly [number, number] | null;
  clusterTab: ClusterTab;
  dataset: string;
  level: string;
  task: string;
  worker: string;
  logSearch: string;
  at: string;
  runFilter: string;
  /** What runs are sorted by; a minus in front turns it round. */
  runSort: string;
  /** Chosen columns of the run table; null = the loss. */
  runColumns: readonly string[] | null;
}

const NO_NAMES: readonly string[] = [];

export const DEFAULT_VIEW: View = {
  demo: false,
  range: "all",
  runs: null,
  x: "step",
  logX: false,
  logY: false,
  clip: false,
  smoothing: 0,
  smoothingKind: "ema",
  formulas: NO_NAMES,
  groupBy: "",
  baseline: "",
  ranks: "mean",
  attempts: "newest",
  tab: "training",
  search: "",
  focus: "",
  zoom: null,
  clusterTab: "workers",
  dataset: "",
  level: "",
  task: "",
  worker: "",
  logSearch: "",
  at: "",
  runFilter: "",
  runSort: "-started",
  runColumns: null,
};

interface Field<T> {
  key: string;
  /** Pages on whose address the field appears; null = all of them. */
  pages: readonly string[] | null;
  encode(value: T): string;
  decode(text: string): T | undefined;
}

const METRICS = ["metrics"] as const;
/** Wherever runs are drawn side by side, or compared. */
const CHARTS = ["metrics", "dashboards", "runs", "overview"] as const;
const LOGS = ["logs"] as const;
const RUNS = ["runs"] as const;

function word<T extends string>(key: string, allowed: readonly T[], pages: Field<T>["pages"]): Field<T> {
  return { key, pages, encode: (v) => v, decode: (text) => allowed.find((item) => item === text) };
}
function flag(key: string, pages: Field<boolean>["pages"]): Field<boolean> {
  return {
    key,
    pages,
    encode: (v) => (v ? "1" : "0"),
    decode: (t) => (t === "1" ? true : t === "0" ? false : undefined),
  };
}
function text(key: string, pages: Field<string>["pages"]): Field<string> {
  return { key, pages, encode: (v) => v, decode: (t) => t };
}

/** Each escaped on its own: a name may hold a comma. */
function names(key: string, pages: Field<unknown>["pages"]): Field<readonly string[] | null> {
  return {
    key,
    pages,
    encode: (v) => (v ?? []).map(encodeURIComponent).join(","),
    decode: (t) => (t === "" ? [] : t.split(",").map(decodeSafe)),
  };
}

const FIELDS: { [K in keyof View]: Field<View[K]> } = {
  demo: flag("demo", null),
  range: word("t", RANGES, null),
  runs: names("runs", null) as Field<string[] | null>,
  x: word("x", X_KINDS, METRICS),
  logX: flag("logx", METRICS),
  logY: flag("log", METRICS),
  clip: flag("clip", METRICS),
  smoothingKind: word("sk", SMOOTHING_KINDS, METRICS),
  formulas: names("f", METRICS) as Field<readonly string[]>,
  groupBy: text("group", CHARTS),
  baseline: text("base", CHARTS),
  smoothing: {
    key: "sm",
    pages: METRICS,
    encode: (v) => String(Math.round(v * 1000) / 1000),
    decode: (t) => {
      const value = Number(t);
      return t !== "" && value >= 0 && value <= 0.999 ? value : undefined;
    },
  },
  ranks: word("ranks", RANK_MODES, METRICS),
  attempts: word("attempts", ATTEMPT_MODES, METRICS),
  tab: word("tab", PAGE_TABS, METRICS),
  search: text("q", METRICS),
  focus: text("m", METRICS),
  zoom: {
    key: "z",
    pages: METRICS,
    encode: (v) => (v ?? []).join("~"),
    decode: (t) => {
      const [from = Number.NaN, to = Number.NaN] = t.split("~").map(Number);
      return from < to ? [from, to] : undefined;
    },
  },
  clusterTab: word("view", CLUSTER_TABS, ["cluster"]),
  dataset: text("ds", ["data", "cluster"]),
  level: text("level", LOGS),
  task: text("task", LOGS),
  worker: text("worker", LOGS),
  logSearch: text("q", LOGS),
  at: text("at", LOGS),
  runFilter: text("q", RUNS),
  runSort: text("sort", RUNS),
  runColumns: names("cols", RUNS),
};

const NAMES = Object.keys(FIELDS) as (keyof View)[];

function decodeSafe(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function isShown(name: keyof View, page: string): boolean {
  const { pages } = FIELDS[name];
  return pages === null || pages.includes(page);
}

function isDefault(value: unknown, fallback: unknown): boolean {
  return value === fallback;
}

export function encodeView(view: View, page: string): string {
  const query = new URLSearchParams();
  for (const name of NAMES) {
    if (!isShown(name, page) || isDefault(view[name], DEFAULT_VIEW[name])) continue;
    const field = FIELDS[name] as Field<unknown>;
    query.set(field.key, field.encode(view[name]));
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}

/** Fields that the page does not show keep their value from `base`. */
export function decodeView(search: string, page: string, base: View = DEFAULT_VIEW): View {
  const query = new URLSearchParams(search);
  const view: Record<string, unknown> = { ...base };
  for (const name of NAMES) {
    if (!isShown(name, page)) continue;
    const field = FIELDS[name] as Field<unknown>;
    const raw = query.get(field.key);
    view[name] = (raw === null ? undefined : field.decode(raw)) ?? DEFAULT_VIEW[name];
  }
  return view as unknown as View;
}
