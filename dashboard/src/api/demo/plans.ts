/** The cast of the demo. Times are relative to the moment it is opened, everything else is fixed. */
import type { Dataset, Worker } from "../wire";
import type { RunPlan } from "./runs";

const HOUR = 3_600_000;

const moe = (lr: number, extra: Record<string, unknown> = {}) => ({
  model: "moe-1.3b",
  learning_rate: lr,
  batch_size: 256,
  seq_len: 2048,
  experts: 16,
  optimizer: "adamw",
  warmup_steps: 500,
  ...extra,
});

export const PLANS: readonly RunPlan[] = [
  {
    id: "moe-1b3-lr3e-4",
    task: "task-7f21",
    ranks: 6,
    firstWorker: 0,
    startedAgo: 10_402 * 1100 + 9_000,
    steps: 10_220,
    restarts: [{ at: 6_182, resume: 6_000 }],
    active: true,
    shape: {
      lr: 3e-4,
      stepMs: 1100,
      total: 20_000,
      nanAt: [4120, 4121, 4122],
      slowRank: { rank: 4, from: 8_300, to: 8_620 },
    },
    config: moe(3e-4),
  },
  {
    id: "resnet50-imagenet",
    task: "task-81c4",
    ranks: 2,
    firstWorker: 6,
    startedAgo: 16_500 * 800,
    steps: 16_500,
    active: true,
    shape: { lr: 1e-3, stepMs: 800, total: 50_000, moe: false, floor: 0.6, tokensPerStep: 512 },
    config: { model: "resnet50", learning_rate: 0.001, batch_size: 256, optimizer: "sgd", augment: true },
  },
  {
    id: "moe-1b3-lr1e-3",
    task: "task-70aa",
    ranks: 6,
    firstWorker: 0,
    startedAgo: 7 * HOUR,
    steps: 3_460,
    active: false,
    shape: { lr: 1e-3, stepMs: 1100, total: 20_000, divergesAt: 3_050, nanAt: [3458, 3459, 3460] },
    config: moe(1e-3),
  },
  {
    id: "moe-760m-base",
    task: "task-6be0",
    ranks: 4,
    firstWorker: 0,
    startedAgo: 27 * HOUR,
    steps: 12_000,
    active: false,
    shape: { lr: 4e-4, stepMs: 820, total: 12_000, floor: 1.86 },
    config: moe(4e-4, { model: "moe-760m", experts: 8 }),
  },
  {
    id: "moe-760m-no-gsa",
    task: "task-6a12",
    ranks: 4,
    firstWorker: 0,
    startedAgo: 51 * HOUR,
    steps: 12_000,
    active: false,
    shape: { lr: 4e-4, stepMs: 760, total: 12_000, floor: 1.94 },
    config: moe(4e-4, { model: "moe-760m", experts: 8, gsa: false }),
  },
];

export const NUM_WORKERS = 8;

export function makeWorker(index: number, now: number): Worker {
  const first = index < 6;
  return {
    id: `worker-${index}`,
    ip: `10.0.${Math.floor(index / 4)}.${20 + (index % 4)}`,
    port: 50_100 + index,
    status: "active",
    state: "TRAINING",
    gpu_count: 1,
    last_heartbeat: now / 1000,
    last_heartbeat_ms: now,
    assigned_shards: 0,
    current_epoch: first ? 1 : 4,
    current_step: 0,
    current_task: first ? "task-7f21" : "task-81c4",
    rank: first ? index : index - 6,
    host: `node-${Math.floor(index / 4)}`,
    resources: null,
    reason: null,
    generation: 4,
  };
}

export function makeDatasets(now: number): Dataset[] {
  const base = { shuffle: true, seed: 42 };
  return [
    {
      ...base,
      id: "fineweb-sample",
      name: "FineWeb sample",
      total_samples: 4_800_000,
      shard_size: 50_000,
      shard_count: 96,
      format: "parquet",
      path: "s3://corpora/fineweb/*.parquet",
      registered_at: (now - 30 * HOUR) / 1000,
      epoch: 1,
      progress: 38.2,
    },
    {
      ...base,
      id: "imagenet-1k",
      name: "ImageNet-1k",
      total_samples: 1_281_167,
      shard_size: 10_000,
      shard_count: 129,
      format: "tar",
      path: "/data/imagenet/train-*.tar",
      registered_at: (now - 60 * HOUR) / 1000,
      epoch: 4,
      progress: 71.4,
    },
    {
      ...base,
      id: "ett-hourly",
      name: "ETT hourly",
      total_samples: 17_420,
      shard_size: 500,
      shard_count: 35,
      format: "csv",
      path: "/data/ett/*.csv",
      registered_at: (now - 80 * HOUR) / 1000,
      epoch: null,
      progress: null,
      shuffle: false,
      seed: 0,
    },
  ];
}
