import type { Nullable } from "./wire";

/** GET /api/status, and the coordinator's part of the state. */
export interface Status {
  connected: boolean;
  address: string;
  uptime: Nullable<number>;
  version: string;
  storage_backend?: Nullable<string>;
  metric_store?: Nullable<string>;
  generation?: Nullable<number>;
  started_at?: Nullable<number>;
  started_at_ms?: Nullable<number>;
  metric_store_ready?: boolean;
  metric_store_problem?: Nullable<string>;
  spool_backlog_bytes?: Nullable<number>;
  dropped_points?: Nullable<number>;
  /** What a part of the server could not deal with, by part; `items` are the newest few. */
  set_aside?: SetAside[];
  /** Places in the spool whose acknowledged batches are lost. */
  spool_damage?: { places: number; num_bytes: number };
  /** Why the coordinator cannot be reached. */
  problem?: Nullable<string>;
}

export interface SetAside {
  part: string;
  count: number;
  items: { item: string; reason: string; at_ms: number; count: number }[];
}
