/** Everything that search can jump to. Opening a target may set parts of the view first. */
import type { FleetQuery } from "@/api/requests";
import type { Worker } from "@/api/wire";
import { seriesStore } from "@/data/series-store";
import { tabOf } from "@/lib/metric-tabs";
import { type Page, pathOf } from "@/lib/routes";
import type { View } from "@/lib/view-codec";
import { displayName, useCatalog } from "@/stores/catalog";
import { useCluster } from "@/stores/cluster";
import { usePrefs } from "@/stores/prefs";
import { addressOf, useView } from "@/stores/view";
import { ENTRIES } from "./navigation";

export interface Target {
  kind: "page" | "run" | "metric" | "worker" | "task" | "dataset";
  name: string;
  /** Sets the view and returns the address to go to. */
  open(): string;
}

function target(kind: Target["kind"], name: string, page: Page, id?: string, view?: Partial<View>): Target {
  const open = () => {
    if (view) useView.getState().set(view);
    return addressOf(pathOf(page, id));
  };
  return { kind, name, open };
}

export function workerTarget(worker: Worker): Target {
  const rank = worker.rank === null ? "" : ` · rank ${worker.rank}`;
  return target("worker", worker.id + rank, "cluster", worker.id);
}

/** What is typed, as a question to the server: it knows `rank 57` by its number, and needs no word for the kind. */
export function workerQuery(text: string): FleetQuery {
  const rank = /\brank\s+(\d+)\b/i.exec(text);
  const rest = text.replace(/\brank\s+\d+\b/i, " ").replace(/\bworkers?\b/i, " ");
  return { q: rest.trim().replace(/\s+/g, " "), ...(rank && { rank: Number(rank[1]) }) };
}

export function collectTargets(): Target[] {
  const { rules } = usePrefs.getState();
  const { workers, tasks, datasets } = useCluster.getState();
  return [
    ...ENTRIES.map((entry) => target("page", entry.label, entry.page)),
    ...useCatalog.getState().runs.map((run) => target("run", displayName(run), "runs", run.run_id)),
    ...tasks.map((task) => target("task", `${task.name} (${task.id})`, "tasks", task.id)),
    ...workers.map(workerTarget),
    ...datasets.map((dataset) => target("dataset", dataset.id, "data", undefined, { dataset: dataset.id })),
    ...seriesStore
      .names()
      .map((name) =>
        target("metric", name, "metrics", undefined, { tab: tabOf(name, rules), search: "", focus: name }),
      ),
  ];
}

/** Every word must occur; names that begin with the text come first. */
export function find(targets: readonly Target[], text: string): Target[] {
  const needle = text.trim().toLowerCase();
  if (!needle) return [...targets];
  const words = needle.split(/\s+/);
  const hits = targets.filter(({ kind, name }) =>
    words.every((word) => `${kind} ${name}`.toLowerCase().includes(word)),
  );
  const starts = (one: Target) => Number(!one.name.toLowerCase().startsWith(needle));
  return hits.sort((a, b) => starts(a) - starts(b));
}
