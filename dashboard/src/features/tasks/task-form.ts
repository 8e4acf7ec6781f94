/** The CreateTaskRequest form: text fields in, a request or a list of complaints out. */
import type { CreateTask } from "@/api/wire";

export interface TaskForm {
  name: string;
  type: string;
  dataset: string;
  workers: string;
  hangTimeout: string;
  spares: string;
  gpus: string;
  excludeStragglers: boolean;
  config: string;
}

export type FormErrors = Partial<Record<keyof TaskForm, string>>;

export const EMPTY_FORM: TaskForm = {
  name: "",
  type: "training",
  dataset: "",
  workers: "2",
  hangTimeout: "",
  spares: "0",
  gpus: "0",
  excludeStragglers: false,
  config: '{\n  "learning_rate": 0.001,\n  "batch_size": 32\n}',
};

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const WORKERS = /^(\d{1,9})(?:\.\.(\d{1,9}))?$/;
const COUNT = /^\d{1,9}$/;
const MAX_WORKERS = 16_384;
const MAX_GPUS = 1024;
const MIN_HANG_S = 3;

export function readForm(form: TaskForm): { request: CreateTask } | { errors: FormErrors } {
  const errors: FormErrors = {};
  const workers = readWorkers(form.workers);
  if (!form.name.trim()) errors.name = "A task needs a name.";
  else if (!NAME.test(form.name.trim())) errors.name = "Letters, digits, dot, dash and underscore; at most 100.";
  if (!form.type.trim()) errors.type = "Such as training, or a type from strata.toml.";
  if (!form.dataset) errors.dataset = "Choose the dataset to read.";
  if (typeof workers === "string") errors.workers = workers;
  const hangTimeout = readHangTimeout(form.hangTimeout.trim());
  if (Number.isNaN(hangTimeout)) errors.hangTimeout = `Seconds, ${MIN_HANG_S} or more; off; or nothing.`;
  const spares = readCount(form.spares);
  if (!(spares <= MAX_WORKERS)) errors.spares = "A whole number; 0 for none.";
  const gpus = readCount(form.gpus);
  if (!(gpus <= MAX_GPUS)) errors.gpus = "A whole number; 0 for none.";
  const config = readConfig(form.config);
  if (typeof config === "string") errors.config = config;
  if (Object.keys(errors).length > 0 || typeof config === "string" || typeof workers === "string") return { errors };
  return {
    request: {
      name: form.name.trim(),
      type: form.type.trim(),
      dataset_id: form.dataset || null,
      ...workers,
      hang_timeout_s: hangTimeout,
      ...(spares > 0 && { spares }),
      ...(gpus > 0 && { gpus_per_worker: gpus }),
      ...(form.excludeStragglers && { exclude_stragglers: true }),
      config,
    },
  };
}

/** A whole number; NaN for what is none. */
function readCount(text: string): number {
  return COUNT.test(text.trim()) ? Number(text) : Number.NaN;
}

/** One number, or the least and the most of an elastic task: 2..8. */
function readWorkers(text: string): Pick<CreateTask, "worker_count" | "min_workers"> | string {
  const [, least, most] = WORKERS.exec(text.trim()) ?? [];
  if (least === undefined) return "A whole number, 1 or more. Or 2..8, for an elastic task.";
  const [low, high] = [Number(least), Number(most ?? least)];
  if (low < 1 || low > high || high > MAX_WORKERS) return `From 1 to ${MAX_WORKERS}, the smaller number first.`;
  return most === undefined ? { worker_count: high } : { worker_count: high, min_workers: low };
}

/** Null to learn it, 0 for never, NaN for what is neither. */
function readHangTimeout(text: string): number | null {
  if (!text) return null;
  if (text.toLowerCase() === "off") return 0;
  const seconds = Number(text);
  return seconds >= MIN_HANG_S && seconds <= 1e9 ? seconds : Number.NaN;
}

function readConfig(text: string): Record<string, unknown> | string {
  if (!text.trim()) return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    return "The config is an object: { … }.";
  } catch (error) {
    return error instanceof Error ? `Not JSON: ${error.message}` : "Not JSON.";
  }
}
