/** The form of an alert rule: text fields in, a request or what is no number out. The rest the server decides. */
import type { RuleInfo, SetRule } from "@/api/wire";

/** Fields are named as the server names them, so that a refusal finds its place. */
export interface RuleForm {
  name: string;
  kind: SetRule["kind"];
  metric: string;
  comparison: "above" | "below";
  value: string;
  for_s: string;
  filter: string;
  baseline: string;
  tolerance_percent: string;
  severity: RuleInfo["severity"];
  targets: readonly string[];
  enabled: boolean;
}

export type RuleField = keyof RuleForm;
export type Errors<F extends string> = Partial<Record<F, string>>;

export const NEW_RULE: RuleForm = {
  name: "",
  kind: "threshold",
  metric: "",
  comparison: "above",
  value: "",
  for_s: "",
  filter: "",
  baseline: "",
  tolerance_percent: "10",
  severity: "warning",
  targets: [],
  enabled: true,
};

export const RULE_KINDS: Record<SetRule["kind"], string> = {
  threshold: "Threshold: a metric is above or below a value",
  bad_value: "NaN: a metric was NaN or Inf",
  divergence: "Divergence: a metric leaves its baseline",
  no_progress: "No progress: a run logs nothing more",
  checkpoint_age: "Checkpoint age: the newest one is too old",
};

/** What a kind asks for beside its name, runs, severity and targets. */
const NEEDS: Record<SetRule["kind"], readonly RuleField[]> = {
  threshold: ["metric", "comparison", "value", "for_s"],
  bad_value: ["metric"],
  divergence: ["metric", "comparison", "baseline", "value", "tolerance_percent", "for_s"],
  no_progress: ["for_s"],
  checkpoint_age: ["for_s"],
};

export function needs(kind: SetRule["kind"], field: RuleField): boolean {
  return NEEDS[kind].includes(field);
}

export function formOf(rule: RuleInfo): RuleForm {
  return {
    ...rule,
    value: rule.value === null ? "" : String(rule.value),
    for_s: rule.for_s === 0 ? "" : String(rule.for_s),
    tolerance_percent: String(rule.tolerance_percent),
  };
}

/** What a kind does not ask for is not sent, and stays in the form for when the kind is changed back. */
export function readRule(form: RuleForm): { request: SetRule } | { errors: Errors<RuleField> } {
  const errors: Errors<RuleField> = {};
  const number = (field: "value" | "for_s" | "tolerance_percent"): number | undefined => {
    const text = form[field].trim();
    if (!needs(form.kind, field) || text === "") return undefined;
    const found = Number(text);
    if (!Number.isFinite(found)) errors[field] = "A number, such as 4 or 1e-3.";
    return found;
  };
  const [value, seconds, percent] = [number("value"), number("for_s"), number("tolerance_percent")];
  if (!form.name.trim()) errors.name = "A rule needs a name: its alerts begin with it.";
  if (Object.keys(errors).length > 0) return { errors };
  const text = (field: "metric" | "baseline") => needs(form.kind, field) && { [field]: form[field].trim() };
  return {
    request: {
      kind: form.kind,
      ...text("metric"),
      ...text("baseline"),
      ...(needs(form.kind, "comparison") && { comparison: form.comparison }),
      ...(value !== undefined && { value }),
      ...(seconds !== undefined && { for_s: seconds }),
      ...(percent !== undefined && { tolerance_percent: percent }),
      filter: form.filter.trim(),
      severity: form.severity,
      targets: [...form.targets],
      enabled: form.enabled,
    },
  };
}
