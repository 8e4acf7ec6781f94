import { useState } from "react";
import type { RuleInfo, TargetInfo } from "@/api/wire";
import { Dialog } from "@/components/ui/dialog";
import { FormFoot } from "@/components/ui/form-foot";
import { requests } from "@/data/source";
import { useMetricNames } from "@/hooks/metric-names";
import { useShownRuns } from "@/hooks/runs";
import { toast } from "@/stores/overlay";
import { Check, ChoiceField, TextField } from "./form-parts";
import { formOf, NEW_RULE, needs, RULE_KINDS, type RuleField, type RuleForm, readRule } from "./rule-form";
import { RunsField } from "./runs-field";
import { useSave } from "./use-save";

interface Props {
  /** Null for a new one. */
  rule: RuleInfo | null;
  targets: readonly TargetInfo[];
  onSaved(): void;
  onClose(): void;
}

const COMPARISONS = { above: "above", below: "below" };
const SEVERITIES = { info: "Info", warning: "Warning", critical: "Critical: also in quiet hours" };

/** How long, in the words of the kind. */
const LASTING: Partial<Record<RuleForm["kind"], string>> = {
  no_progress: "A run may be silent for (s)",
  checkpoint_age: "A checkpoint may be old (s)",
};

export function RuleDialog({ rule, targets, onSaved, onClose }: Props) {
  const [form, setForm] = useState<RuleForm>(rule ? formOf(rule) : NEW_RULE);
  const metrics = useMetricNames(useShownRuns());
  const change = (part: Partial<RuleForm>) => setForm((old) => ({ ...old, ...part }));
  const has = (field: RuleField) => needs(form.kind, field);
  const { submit, busy, errors, refusal } = useSave(form, readRule(form), async (request) => {
    await requests().setRule(form.name.trim(), request, rule === null);
    toast(`Rule ${form.name.trim()} is set.`, "ok");
    onSaved();
    onClose();
  });
  /** What every field of text has in common. */
  const text = (field: "name" | "metric" | "value" | "for_s" | "baseline" | "tolerance_percent") => ({
    value: form[field],
    error: errors[field],
    onText: (typed: string) => change({ [field]: typed }),
  });
  return (
    <Dialog title={rule ? `Rule ${rule.name}` : "New alert rule"} onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3 p-4" noValidate>
        <div className="grid grid-cols-2 gap-3 max-sm:grid-cols-1">
          <TextField label="Name" hint="Its alerts begin with it" disabled={rule !== null} {...text("name")} />
          <ChoiceField
            label="Severity"
            value={form.severity}
            options={SEVERITIES}
            onText={(severity) => change({ severity: severity as RuleForm["severity"] })}
          />
        </div>
        <ChoiceField
          label="Kind"
          value={form.kind}
          options={RULE_KINDS}
          error={errors.kind}
          onText={(kind) => change({ kind: kind as RuleForm["kind"] })}
        />
        <div className="grid grid-cols-2 gap-3 max-sm:grid-cols-1">
          {has("metric") && (
            <TextField label="Metric" hint="As the script logs it" names={metrics} {...text("metric")} />
          )}
          {has("comparison") && (
            <ChoiceField
              label="Is"
              hint="The mean over ranks"
              value={form.comparison}
              options={COMPARISONS}
              onText={(comparison) => change({ comparison: comparison as RuleForm["comparison"] })}
            />
          )}
          {has("baseline") && <TextField label="Baseline run" hint="Its id; or give a value" {...text("baseline")} />}
          {has("value") && (
            <TextField
              label="Value"
              {...(has("baseline") && { hint: "Without a baseline run" })}
              inputMode="decimal"
              {...text("value")}
            />
          )}
          {has("tolerance_percent") && (
            <TextField label="By more than (%)" inputMode="decimal" {...text("tolerance_percent")} />
          )}
          {has("for_s") && (
            <TextField
              label={LASTING[form.kind] ?? "For at least (s)"}
              {...(!LASTING[form.kind] && { hint: "Empty: at once" })}
              inputMode="decimal"
              {...text("for_s")}
            />
          )}
        </div>
        <RunsField value={form.filter} error={errors.filter} onText={(filter) => change({ filter })} />
        <fieldset className="flex flex-col gap-1.5">
          <legend className="mb-1 text-xs font-medium">Tell</legend>
          {targets.map((target) => (
            <Check
              key={target.name}
              on={form.targets.includes(target.name)}
              onChange={(on) =>
                change({
                  targets: [...form.targets.filter((one) => one !== target.name), ...(on ? [target.name] : [])],
                })
              }
            >
              {target.name}
              {target.all_alerts && <span className="text-faint">gets every alert anyway</span>}
            </Check>
          ))}
          {targets.length === 0 && <p className="text-xs text-muted">No target yet: its alerts are shown here only.</p>}
          {errors.targets && <p className="text-2xs text-bad">{errors.targets}</p>}
        </fieldset>
        <Check on={form.enabled} onChange={(enabled) => change({ enabled })}>
          Watch
        </Check>
        <FormFoot refusal={refusal} submit={busy ? "Saving…" : "Save"} disabled={busy} onClose={onClose} />
      </form>
    </Dialog>
  );
}
