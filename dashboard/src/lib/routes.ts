/** The pages and their addresses. They live under /ui because /runs, /metrics and /checkpoints are the server's own. */

export const PAGES = [
  "overview",
  "runs",
  "metrics",
  "dashboards",
  "cluster",
  "data",
  "checkpoints",
  "tasks",
  "logs",
  "alerts",
  "settings",
] as const;

export type Page = (typeof PAGES)[number];

export interface Place {
  page: Page | "unknown";
  /** The rest of the path: a worker, a task, a run. */
  id: string | null;
}

const BASE = import.meta.env.BASE_URL.replace(/\/$/, "");

export function pathOf(page: Page, id?: string): string {
  if (page === "overview") return `${BASE}/`;
  return `${BASE}/ui/${page}${id === undefined ? "" : `/${encodeURIComponent(id)}`}`;
}

/** Also takes addresses without /ui, so that /tasks typed by hand works. */
export function pageOf(path: string): Place {
  const parts = path.slice(BASE.length).split("/").filter(Boolean);
  if (parts[0] === "ui") parts.shift();
  const [name = "overview", id] = parts;
  const page = PAGES.find((candidate) => candidate === name) ?? "unknown";
  return { page, id: id === undefined ? null : decodeURIComponent(id) };
}
