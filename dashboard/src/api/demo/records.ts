/** Records of the simulated cluster, in the shapes of the wire. */
import type { Barrier, Resources, Task, WorkerStatus } from "../wire";
import { normal } from "./noise";
import type { DemoRun } from "./runs";

export function taskOf(run: DemoRun): Task {
  const { plan } = run;
  const failed = run.shape.divergesAt !== null;
  const end = plan.active ? null : run.time;
  return {
    id: plan.task,
    name: plan.id,
    type: "training",
    status: plan.active ? "running" : failed ? "failed" : "completed",
    worker_ids: Array.from({ length: plan.ranks }, (_, i) => `worker-${plan.firstWorker + i}`),
    dataset_id: run.shape.moe ? "fineweb-sample" : "imagenet-1k",
    started_at: run.start / 1000,
    started_at_ms: run.start,
    completed_at: end === null ? null : end / 1000,
    completed_at_ms: end,
    progress: (100 * run.step) / run.shape.total,
    config: plan.config,
    attempt: run.legs.length,
    reason: failed ? "loss is NaN for 3 steps" : null,
    worker_count: plan.ranks,
    launcher: "local",
  };
}

export function resources(i: number, now: number, status: WorkerStatus): Resources {
  const second = Math.floor(now / 2000);
  const busy = status === "active" ? 1 : status === "checkpointing" ? 0.7 : 0.05;
  return {
    cpu_percent: Math.max(1, (36 + 5 * normal(30 + i, second)) * (0.4 + 0.6 * busy)),
    memory_used_bytes: 61e9 + i * 1.1e9 + 4e8 * normal(40 + i, second),
    memory_total_bytes: 128e9,
    gpu_metrics: [
      {
        gpu_id: 0,
        utilization_percent: Math.max(0, Math.min(100, (93 + 3 * normal(50 + i, second)) * busy)),
        memory_used_bytes: 63e9 + i * 5e8,
        memory_total_bytes: 80e9,
        temperature_celsius: 58 + 6 * busy + normal(60 + i, second),
      },
    ],
    disk_read_bytes: 3.2e8 + 4e7 * normal(70 + i, second),
    disk_write_bytes: status === "checkpointing" ? 1.7e9 : 2.1e6,
    network_rx_bytes: 2.1e9 * busy,
    network_tx_bytes: 2.0e9 * busy,
  };
}

export function barrierOf(time: number, step: number, rest: Partial<Barrier> & Pick<Barrier, "status">): Barrier {
  const name = `step-${step}`;
  const times = { created_at: time / 1000, created_at_ms: time };
  return {
    id: `${name}-${rest.status}`,
    name,
    arrived: 5,
    total: 6,
    ...times,
    missing: [],
    reason: null,
    step,
    ...rest,
  };
}
