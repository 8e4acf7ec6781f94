/** Log lines of the simulated cluster: a history to scroll through, and what the workers say as they go. */
import { formatValue } from "@/lib/format";
import type { LogEntry, LogLevel } from "../wire";
import { unit } from "./noise";

export class LogWriter {
  #next = 1;
  readonly lines: LogEntry[] = [];
  /** Old lines that only a question about their time brings up. */
  archive: LogEntry[] = [];
  #pending: LogEntry[] = [];

  write(
    time: number,
    level: LogLevel,
    source: string,
    message: string,
    at: { task?: string; worker?: number } = {},
  ): void {
    const entry: LogEntry = {
      id: `log_${(this.#next++).toString(16).padStart(6, "0")}`,
      timestamp: time / 1000,
      timestamp_ms: Math.round(time),
      level,
      message,
      source,
      task_id: at.task ?? null,
      worker_id: at.worker === undefined ? null : `worker-${at.worker}`,
      rank: at.worker === undefined ? null : at.worker < 6 ? at.worker : at.worker - 6,
    };
    this.lines.push(entry);
    this.#pending.push(entry);
  }

  take(): LogEntry[] {
    const out = this.#pending.sort((a, b) => a.timestamp - b.timestamp);
    this.#pending = [];
    return out;
  }
}

export interface StepFacts {
  task: string;
  step: number;
  time: number;
  loss: number | null;
  tokens: number | null;
  firstWorker: number;
  ranks: number;
}

/** What a step leaves in the log: rank 0 reports each tenth, other ranks chatter now and then. */
export function logStep(out: LogWriter, facts: StepFacts): void {
  const { task, step, time, loss, tokens, firstWorker, ranks } = facts;
  if (loss === null) {
    out.write(time, "error", "worker", `loss is NaN at step ${step}; gradient skipped, scaler 65536 → 32768`, {
      task,
      worker: firstWorker,
    });
  } else if (step % 10 === 0) {
    const rate = tokens === null ? "" : ` · ${Math.round(tokens).toLocaleString("en-US")} tokens/s`;
    out.write(time, "info", "worker", `step ${step} · loss ${formatValue(loss)}${rate}`, { task, worker: firstWorker });
  }
  const rank = step % ranks;
  const dice = unit(77, step, firstWorker);
  const at = { task, worker: firstWorker + rank };
  if (dice < 0.1)
    out.write(
      time + 120,
      "debug",
      "worker",
      `prefetch depth 4, shard ${step % 96} at sample ${(step * 256) % 50_000}`,
      at,
    );
  if (dice > 0.985)
    out.write(time + 200, "warn", "worker", `read of shard ${step % 96} took 1.8 s, retrying (1 of 3)`, at);
}
