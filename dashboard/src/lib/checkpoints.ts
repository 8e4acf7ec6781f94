import type { Checkpoint } from "@/api/wire";
import { formatDateTime } from "@/lib/format";

/** What is known of a checkpoint's bytes, in a word. */
export function verdictOf(checkpoint: Checkpoint): "verified" | "damaged" | "not verified" {
  if (checkpoint.verified === null) return "not verified";
  return checkpoint.verified ? "verified" : "damaged";
}

/** Why a checkpoint is as it is, or when its bytes were last read. */
export function explain(checkpoint: Checkpoint): string {
  if (checkpoint.reason) return checkpoint.reason;
  return checkpoint.verified ? `every byte was read ${formatDateTime(checkpoint.verified_at_ms)}` : "";
}

/** A task would go back to it: it is complete, and nobody has found it damaged. */
export function isGood(checkpoint: Checkpoint): boolean {
  return checkpoint.status === "completed" && checkpoint.verified !== false;
}
