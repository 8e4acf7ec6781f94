/** The coordinator's state as last told: whole collections, replaced when they change. */
import { create } from "zustand";
import type {
  Barrier,
  Checkpoint,
  ClusterState,
  Dataset,
  Fleet,
  Status,
  SystemMetrics,
  Task,
  Worker,
} from "@/api/wire";

export interface Cluster {
  /** False until the first whole answer: what is empty before it is not known to be so. */
  loaded: boolean;
  /** Empty while the fleet is folded: then nobody has named them. */
  workers: Worker[];
  fleet: Fleet;
  tasks: Task[];
  datasets: Dataset[];
  checkpoints: Checkpoint[];
  barriers: Barrier[];
  metrics: SystemMetrics | null;
  coordinator: Status | null;
}

export const EMPTY_CLUSTER: Cluster = {
  loaded: false,
  workers: [],
  fleet: { total: 0, folded: false, groups: [] },
  tasks: [],
  datasets: [],
  checkpoints: [],
  barriers: [],
  metrics: null,
  coordinator: null,
};

export const useCluster = create<Cluster>(() => EMPTY_CLUSTER);

const KEYS = ["workers", "fleet", "tasks", "datasets", "checkpoints", "barriers", "metrics", "coordinator"] as const;

/** Only the named collections change; `except` holds those that a newer event has written meanwhile. */
export function applyState(state: ClusterState, except: ReadonlySet<string> = new Set()): void {
  const change: Partial<Cluster> = isWhole(state) ? { loaded: true } : {};
  for (const key of KEYS) {
    if (state[key] !== undefined && !except.has(key)) Object.assign(change, { [key]: state[key] });
  }
  if (change.workers) change.workers = [...change.workers].sort(byTaskAndRank);
  useCluster.setState(change);
}

/** An event names what changed, and may come before the answer that has everything. */
function isWhole({ workers, tasks, datasets }: ClusterState): boolean {
  return workers !== undefined && tasks !== undefined && datasets !== undefined;
}

/** In seconds. The record is sent when something changes, so the time since then is ours to add. */
export function upFor(coordinator: Status, now: number): number | null {
  const start = coordinator.started_at_ms;
  return start === null || !coordinator.connected ? coordinator.uptime : Math.max(0, (now - start) / 1000);
}

/** Ranks repeat from task to task, so the ranks of a task stand together. */
function byTaskAndRank(a: Worker, b: Worker): number {
  const task = (a.current_task ?? "~").localeCompare(b.current_task ?? "~");
  return task || (a.rank ?? Number.MAX_SAFE_INTEGER) - (b.rank ?? Number.MAX_SAFE_INTEGER) || a.id.localeCompare(b.id);
}
