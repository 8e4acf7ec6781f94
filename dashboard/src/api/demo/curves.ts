/** What a simulated run measures: each metric as a pure function of run, rank and step. */
import { drift, normal, unit } from "./noise";

export interface Shape {
  seed: number;
  lr: number;
  tokensPerStep: number;
  floor: number;
  stepMs: number;
  total: number;
  moe: boolean;
  /** Steps whose loss is NaN, and the run that never came back from them. */
  nanAt: readonly number[];
  divergesAt: number | null;
  slowRank: { rank: number; from: number; to: number } | null;
}

export interface Curve {
  metric: string;
  unit: string;
  /** Every n-th step; ranks: one series per rank. */
  every: number;
  perRank: boolean;
  value(run: Shape, step: number, rank: number): number | null;
}

function lossAt(run: Shape, step: number): number | null {
  if (run.nanAt.includes(step)) return null;
  const base = run.floor + 8.2 * (step + 30) ** -0.32 + 0.35 * Math.exp(-step / 900);
  const noise = normal(run.seed, step) * (0.018 + 0.05 * Math.exp(-step / 700));
  const nan = run.nanAt[0];
  const bump = nan === undefined ? 0 : 1.6 * Math.exp(-(((step - nan) / 22) ** 2));
  const blow = run.divergesAt !== null && step > run.divergesAt ? ((step - run.divergesAt) / 160) ** 2 : 0;
  return base + noise + bump + blow + 0.02 * drift(run.seed + 9, step, 400);
}

function gradAt(run: Shape, step: number): number {
  const nan = run.nanAt[0];
  const bump = nan === undefined ? 0 : 14 * Math.exp(-(((step - nan) / 14) ** 2));
  const blow = run.divergesAt !== null && step > run.divergesAt ? ((step - run.divergesAt) / 60) ** 2 : 0;
  return 0.45 + 2.6 * (step + 20) ** -0.25 + Math.abs(normal(run.seed + 20, step)) * 0.12 + bump + blow;
}

function lrAt(run: Shape, step: number): number {
  const warm = Math.min(1, step / 500);
  const left = Math.max(0, 1 - step / run.total);
  return run.lr * warm * (0.1 + 0.9 * 0.5 * (1 + Math.cos(Math.PI * (1 - left))));
}

export function stepTime(run: Shape, step: number, rank: number): number {
  const { slowRank } = run;
  const slow = slowRank && slowRank.rank === rank && step >= slowRank.from && step <= slowRank.to ? 2.1 : 1;
  const spike = unit(run.seed + 31, step, rank) > 0.997 ? 1.5 : 1;
  return (run.stepMs / 1000) * slow * spike * (1 + 0.035 * normal(run.seed + 30, step, rank) + 0.012 * rank);
}

function slowest(run: Shape, step: number): number {
  const { slowRank } = run;
  return slowRank && step >= slowRank.from && step <= slowRank.to ? 2.1 : 1;
}

function tokensPerSec(run: Shape, step: number): number {
  return (run.tokensPerStep / ((run.stepMs / 1000) * slowest(run, step))) * (1 + 0.02 * normal(run.seed + 40, step));
}

function gpuAt(run: Shape, step: number, rank: number): number {
  const waiting = slowest(run, step) > 1 && run.slowRank?.rank !== rank;
  return Math.max(2, Math.min(100, (waiting ? 58 : 93) + 3 * normal(run.seed + 50 + rank, step)));
}

const curve = (
  metric: string,
  unitName: string,
  value: Curve["value"],
  options: Partial<Pick<Curve, "every" | "perRank">> = {},
): Curve => ({ metric, unit: unitName, value, every: 1, perRank: false, ...options });

const HOST = { every: 8, perRank: true } as const;

export const COMMON_CURVES: readonly Curve[] = [
  curve("loss", "", lossAt),
  curve("grad_norm", "", gradAt),
  curve("lr", "", lrAt),
  curve(
    "val/loss",
    "",
    (run, step) => run.floor + 8.2 * (step + 30) ** -0.32 + 0.07 + 0.01 * normal(run.seed + 5, step),
    {
      every: 200,
    },
  ),
  curve("throughput/tokens_per_sec", "tokens/s", tokensPerSec),
  curve("step_time", "s", stepTime, { perRank: true }),
  curve("batch/data_wait_ms", "ms", (run, step, rank) => 6 + 3 * Math.abs(normal(run.seed + 60, step, rank)), {
    perRank: true,
    every: 4,
  }),
  curve("sys.gpu.0.util_percent", "%", gpuAt, HOST),
  curve("sys.gpu.0.mem_percent", "%", (run, step, rank) => 78 + rank * 0.7 + 2 * drift(run.seed + 70, step, 900), HOST),
  curve(
    "sys.cpu_percent",
    "%",
    (run, step, rank) => 34 + 8 * drift(run.seed + 80 + rank, step, 300) + 2 * normal(run.seed, step),
    HOST,
  ),
  curve("sys.mem_percent", "%", (run, step, rank) => 47 + step / 900 + drift(run.seed + 90 + rank, step, 500), HOST),
  curve("sys.net.eth0.sent_bytes_per_s", "B/s", (run, step) => 2.1e9 * (1 + 0.06 * normal(run.seed + 95, step)), HOST),
  curve("progress/percent", "%", (run, step) => (100 * step) / run.total, { every: 20 }),
  curve("tokens/total", "tokens", (run, step) => step * run.tokensPerStep, { every: 20 }),
];

export const MOE_CURVES: readonly Curve[] = [
  curve(
    "moe/load_balance",
    "",
    (run, step) => 1.02 + 1.4 * Math.exp(-step / 1200) + 0.02 * normal(run.seed + 100, step),
  ),
  curve(
    "moe/expert_entropy",
    "nats",
    (run, step) => 2.05 - 0.5 * Math.exp(-step / 1500) + 0.012 * normal(run.seed + 101, step),
  ),
  curve("moe/dropped_tokens", "%", (run, step) =>
    Math.max(0, 6 * Math.exp(-step / 800) + 0.6 + 0.2 * normal(run.seed + 102, step)),
  ),
  curve("router/z_loss", "", (run, step) => 0.004 + 0.03 * (step + 50) ** -0.3 + 0.0006 * normal(run.seed + 103, step)),
  curve("gsa/sparsity", "", (run, step) => 0.82 - 0.4 * Math.exp(-step / 2000) + 0.006 * normal(run.seed + 104, step)),
  curve("gsa/gate_mean", "", (run, step) => 0.31 + 0.12 * drift(run.seed + 105, step, 1200)),
  curve("null_ratio", "", (run, step) => 0.18 * Math.exp(-step / 3000) + 0.02 + 0.004 * normal(run.seed + 106, step)),
  curve("loss/aux", "", (run, step) => 0.012 + 0.05 * (step + 40) ** -0.35 + 0.001 * normal(run.seed + 107, step)),
];

export function curvesOf(run: Shape): readonly Curve[] {
  return run.moe ? [...COMMON_CURVES, ...MOE_CURVES] : COMMON_CURVES;
}
