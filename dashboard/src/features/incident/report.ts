/** The incident as Markdown, for an issue or an agent. */
import type { Barrier, Checkpoint, LogEntry, RunInfo } from "@/api/wire";
import { formatClock, formatDateTime, formatValue } from "@/lib/format";
import { timeOf } from "@/lib/logs";
import type { Incident } from "@/stores/overlay";
import type { MetricEvidence } from "./evidence";

export interface Report {
  incident: Incident;
  at: { step: number | null; time: number | null };
  run: RunInfo | undefined;
  evidence: readonly MetricEvidence[];
  barriers: readonly Barrier[];
  checkpoint: Checkpoint | null;
  lines: readonly LogEntry[];
}

const MAX_LINES = 40;

export function toMarkdown({ incident, at, run, evidence, barriers, checkpoint, lines }: Report): string {
  const out = [
    `## ${incident.title}`,
    "",
    `- run: ${run?.run_id ?? "unknown"}`,
    `- step: ${at.step ?? "unknown"}`,
    `- time: ${formatDateTime(at.time)}`,
    `- last good checkpoint: ${checkpoint ? `step ${checkpoint.step}, ${checkpoint.path}` : "none known"}`,
  ];
  for (const one of evidence) {
    const values = one.ranks.map(
      (value) => `rank ${value.rank} = ${value.value === null ? "NaN" : formatValue(value.value)}`,
    );
    out.push(`- ${one.metric}: ${values.join(", ")}`);
  }
  for (const barrier of barriers)
    out.push(
      `- barrier ${barrier.name}: ${barrier.status}, ${barrier.arrived}/${barrier.total} ${barrier.reason ?? ""}`,
    );
  if (run?.config) out.push("", "```json", JSON.stringify(run.config, null, 2), "```");
  if (lines.length > 0) {
    out.push("", "```");
    for (const line of lines.slice(0, MAX_LINES)) {
      out.push(
        `${formatClock(timeOf(line), true)} ${line.level.toUpperCase()} ${line.worker_id ?? line.source} ${line.message}`,
      );
    }
    out.push("```");
  }
  return out.join("\n");
}
