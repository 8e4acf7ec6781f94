/** The form of a fork: text fields in, a request or a list of complaints out. */
import type { ForkTask } from "@/api/wire";
import type { ForkPlace } from "@/stores/overlay";

export interface ForkForm {
  name: string;
  changes: string;
  skip: string;
}

export type ForkErrors = Partial<Record<keyof ForkForm, string>>;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const STEPS = /^(\d{1,15})(?:\.\.(\d{1,15}))?$/;

export function readFork(form: ForkForm, place: ForkPlace): { request: ForkTask } | { errors: ForkErrors } {
  const errors: ForkErrors = {};
  const name = form.name.trim();
  if (name && !NAME.test(name)) errors.name = "Letters, digits, dot, dash and underscore; at most 100.";
  const skip = readSkip(form.skip);
  if (typeof skip === "string") errors.skip = skip;
  const changes = readChanges(form.changes);
  if (typeof changes === "string") errors.changes = changes;
  if (Object.keys(errors).length > 0 || typeof skip === "string" || typeof changes === "string") return { errors };
  return {
    request: {
      ...(place.checkpoint_id !== null && { checkpoint_id: place.checkpoint_id }),
      // With steps to leave out the server takes the newest checkpoint before them.
      ...(place.checkpoint_id === null && skip.length === 0 && place.step !== null && { step: place.step }),
      ...(skip.length > 0 && { skip }),
      ...(name && { name }),
      changes,
    },
  };
}

/** 1200..1260, or several of them with commas between. */
function readSkip(text: string): [number, number][] | string {
  const found: [number, number][] = [];
  for (const part of text.split(",").map((one) => one.trim())) {
    if (!part) continue;
    const [, first, last] = STEPS.exec(part) ?? [];
    if (first === undefined) return "Steps such as 1200..1260.";
    if (Number(last ?? first) < Number(first)) return `${part} runs backwards.`;
    found.push([Number(first), Number(last ?? first)]);
  }
  return found;
}

/** KEY=VALUE per line; what is no JSON is text. */
function readChanges(text: string): Record<string, unknown> | string {
  const found: Record<string, unknown> = {};
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (!line) continue;
    const cut = line.indexOf("=");
    if (cut < 1) return `${line}: one KEY=VALUE per line, such as lr=1e-4.`;
    const value = line.slice(cut + 1).trim();
    try {
      found[line.slice(0, cut).trim()] = JSON.parse(value);
    } catch {
      found[line.slice(0, cut).trim()] = value;
    }
  }
  return found;
}
