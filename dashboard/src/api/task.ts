/** What a task is asked for with, and what it has used up. */

export interface CreateTask {
  name: string;
  type: string;
  dataset_id: string | null;
  worker_count: number;
  config: Record<string, unknown>;
  entrypoint?: string[];
  env?: Record<string, string>;
  launcher?: string;
  max_restarts?: number;
}

/** How much a task has used of its restarts: failures of its own, and losses (kills from outside, lost hosts). */
export interface Budget {
  failures: number;
  max_failures: number;
  failures_in_a_row: number;
  max_failures_in_a_row: number;
  losses: number;
  max_losses: number;
  losses_in_all: number;
  window_s: number;
}
