/** Dashboards on their way to the server, to a file and back. */
import type { SavedDashboard } from "@/api/wire";
import { download } from "@/components/metric/export";
import { requests } from "@/data/source";
import { useView } from "@/stores/view";
import { afterSave, type Board, forget } from "./boards";
import { type Layout, toWire } from "./layout";

/** With the runs, the group and the baseline that are on show: whoever opens it sees the same. */
export function withView(layout: Layout): Layout {
  const { runs, groupBy, baseline } = useView.getState();
  return { ...layout, runs, group_by: groupBy, baseline };
}

/** Replaces the version that this page has read; the server refuses when there is a newer one. */
export async function saveBoard(board: Board): Promise<SavedDashboard> {
  const body = { name: board.name, project: board.project, layout: toWire(withView(board.layout)) };
  const saved = await requests().saveDashboard(board.id ?? newId(board.name), body, board.version);
  afterSave(saved, board.layout);
  return saved;
}

/** The changes go with the copy: the one that it was made of is as the server has it. */
export async function saveAs(board: Board, name: string, project: string): Promise<SavedDashboard> {
  const saved = await saveBoard({ ...board, id: null, version: null, name, project });
  forget(board.id ?? "");
  return saved;
}

/** Letters of its name, so that an address can be read, and chance, so that two of one name have two. */
export function newId(
  name: string,
  chance: () => string = () => crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36) ?? "",
): string {
  const words = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 40);
  return [words || "dashboard", chance()].join("-");
}

export function exportBoard(board: Board): void {
  const { name, project } = board;
  const text = JSON.stringify({ name, project, layout: toWire(withView(board.layout)) }, null, 2);
  download(`${name}.dashboard.json`, new Blob([text], { type: "application/json" }));
}

/** A file becomes a new dashboard. The server reads the layout and names the place that it cannot. */
export async function importBoard(text: string): Promise<SavedDashboard> {
  const { name, project, layout } = readFile(text);
  return requests().saveDashboard(newId(name), { name, project, layout }, null);
}

export function readFile(text: string): { name: string; project: string; layout: object } {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (cause) {
    throw new Error(`The file is no JSON: ${placed(cause instanceof Error ? cause.message : String(cause), text)}.`);
  }
  if (typeof found !== "object" || found === null || !("layout" in found)) {
    throw new Error("The file is no dashboard: it has no layout. Export one to see how it looks.");
  }
  const { name, project, layout } = found as { name?: unknown; project?: unknown; layout: object };
  return {
    name: typeof name === "string" && name ? name : "Imported",
    project: typeof project === "string" ? project : "",
    layout,
  };
}

/** Browsers say the place as a count of characters, or quote the text around it; people count lines. */
function placed(message: string, text: string): string {
  if (/line \d+/.test(message)) return message;
  const position = /position (\d+)/.exec(message)?.[1];
  const quoted = /"([\s\S]*)"(?:\.\.\.)? is not valid JSON$/.exec(message)?.[1];
  const at =
    position !== undefined
      ? Number(position)
      : quoted !== undefined
        ? text.indexOf(quoted) + quoted.length
        : text.length;
  return `${message} (line ${text.slice(0, at).split("\n").length})`;
}
