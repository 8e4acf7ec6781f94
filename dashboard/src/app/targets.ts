/** Everything that search can jump to. Opening a target may set parts of the view first. */
import type { FleetQuery } from "@/api/requests";
import type { MetricName, Worker } from "@/api/wire";
import { seriesStore } from "@/data/series-store";
import { tabOf } from "@/lib/metric-tabs";
import { type Page, pathOf } from "@/lib/routes";
import type { View } from "@/lib/view-codec";
import { addRuns, displayName, shownRuns, useCatalog } from "@/stores/catalog";
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

function metricView(name: string): Partial<View> {
  return { tab: tabOf(name, usePrefs.getState().rules), search: "", focus: name };
}

/** A metric of a run whose series the page was not told of: the run is shown with it. */
export function foreignMetric({ metric, run }: MetricName): Target {
  const open = () => {
    addRuns([run]);
    const shown = shownRuns(useCatalog.getState().runs, useView.getState().runs);
    const runs = shown.includes(run.run_id) ? null : { runs: [...shown, run.run_id] };
    useView.getState().set({ ...metricView(metric), ...runs });
    return addressOf(pathOf("metrics"));
  };
  return { kind: "metric", name: `${metric} · ${displayName(run)}`, open };
}

/** What is typed, without the word for the kind: the server knows metrics by their names alone. */
export function metricQuery(text: string): string {
  return text
    .replace(/\bmetrics?\b/i, " ")
    .trim()
    .replace(/\s+/g, " ");
}

export function collectTargets(): Target[] {
  const { workers, tasks, datasets } = useCluster.getState();
  return [
    ...ENTRIES.map((entry) => target("page", entry.label, entry.page)),
    ...useCatalog.getState().runs.map((run) => target("run", displayName(run), "runs", run.run_id)),
    ...tasks.map((task) => target("task", `${task.name} (${task.id})`, "tasks", task.id)),
    ...workers.map(workerTarget),
    ...datasets.map((dataset) => target("dataset", dataset.id, "data", undefined, { dataset: dataset.id })),
    ...seriesStore.names().map((name) => target("metric", name, "metrics", undefined, metricView(name))),
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
