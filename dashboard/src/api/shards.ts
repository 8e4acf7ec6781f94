/** Who reads which samples of a dataset, and a look at them. */
import type { Nullable } from "./wire";

/** Samples of one shard that one worker reads. */
export interface ShardReader {
  worker_id: string;
  rank: Nullable<number>;
  alive: boolean;
  start_index: number;
  end_index: number;
}

export interface Shard {
  shard_id: number;
  /** Who reads most of it; in queue mode who took it last. */
  worker_id: Nullable<string>;
  /** Everybody who reads samples of it. */
  readers?: ShardReader[];
  task_id?: Nullable<string>;
  /** How the group reads: its loaders said so, a queue lent it, or it was dealt; null = nobody reads it. */
  mode?: Nullable<"lanes" | "queue" | "dealt">;
  rank?: Nullable<number>;
  start_index: number;
  end_index: number;
  progress: Nullable<number>;
  epoch?: Nullable<number>;
  file_paths?: string[];
}

/** A cell of a preview: a plain value, or an object that says what it is. */
export type PreviewCell =
  | Nullable<string | number | boolean>
  | PreviewImage
  | { kind: "text"; text: string; size?: number }
  | { kind: "bytes"; hex: string; size: number }
  | { kind: "array"; dtype: string; shape: number[]; values: PreviewCell[] }
  | { kind: "list"; size: number; values: PreviewCell[] };

export interface PreviewImage {
  kind: "image";
  /** A data URL; missing when the image is broken or too large. */
  thumbnail?: string;
  error?: string;
  width?: number;
  height?: number;
  size?: number;
}

export interface Preview {
  dataset_id?: string;
  worker_id?: Nullable<string>;
  epoch?: Nullable<number>;
  columns: { name: string; type: string }[];
  rows: Record<string, PreviewCell>[];
  /** Where each row comes from. */
  origins?: { index?: number; file?: string; row?: number }[];
  note?: Nullable<string>;
}
