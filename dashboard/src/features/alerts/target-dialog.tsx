import { useState } from "react";
import type { TargetInfo } from "@/api/wire";
import { Dialog } from "@/components/ui/dialog";
import { FormFoot } from "@/components/ui/form-foot";
import { requests } from "@/data/source";
import { toast } from "@/stores/overlay";
import { Check, ChoiceField, TextField } from "./form-parts";
import { formOfTarget, newTarget, readTarget, TARGET_KINDS, type TargetField, type TargetForm } from "./target-form";
import { useSave } from "./use-save";

interface Props {
  /** Null for a new one. */
  target: TargetInfo | null;
  onSaved(): void;
  onClose(): void;
}

type Words = Exclude<TargetField, "kind" | "tls" | "all_alerts">;

const ZONES: readonly string[] = ["UTC", ...Intl.supportedValuesOf("timeZone")];

export function TargetDialog({ target, onSaved, onClose }: Props) {
  const [form, setForm] = useState<TargetForm>(() => (target ? formOfTarget(target) : newTarget()));
  const change = (part: Partial<TargetForm>) => setForm((old) => ({ ...old, ...part }));
  const { submit, busy, errors, refusal } = useSave(form, readTarget(form), async (request) => {
    await requests().setTarget(form.name.trim(), request, target === null);
    toast(`Target ${form.name.trim()} is set.`, "ok");
    onSaved();
    onClose();
  });
  const text = (field: Words) => ({
    value: form[field],
    error: errors[field],
    onText: (typed: string) => change({ [field]: typed }),
  });
  const isKept = target !== null && target.kind === form.kind;
  return (
    <Dialog title={target ? `Target ${target.name}` : "New target"} onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3 p-4" noValidate>
        <div className="grid grid-cols-2 gap-3 max-sm:grid-cols-1">
          <TextField label="Name" hint="Rules choose it by this" disabled={target !== null} {...text("name")} />
          <ChoiceField
            label="Kind"
            value={form.kind}
            options={TARGET_KINDS}
            error={errors.kind}
            onText={(kind) => change({ kind: kind as TargetForm["kind"] })}
          />
        </div>
        {form.kind === "email" ? (
          <div className="grid grid-cols-2 gap-3 max-sm:grid-cols-1">
            <TextField label="SMTP server" {...text("host")} />
            <TextField label="Port" inputMode="numeric" {...text("port")} />
            <TextField label="User" hint="Empty: without signing in" {...text("user")} />
            <TextField
              label="Password"
              type="password"
              hint={isKept && target.has_password ? "Empty: stays as it is" : "Never shown again"}
              {...text("password")}
            />
            <TextField label="From" {...text("sender")} />
            <TextField label="To" hint="Addresses, divided by commas" {...text("recipients")} />
            <Check on={form.tls} onChange={(tls) => change({ tls })}>
              STARTTLS
            </Check>
          </div>
        ) : (
          <TextField
            label="URL"
            inputMode="url"
            hint={isKept ? `Empty: stays the one at ${target.place}` : "It is a secret: never shown again, in no log"}
            {...text("url")}
          />
        )}
        <div className="grid grid-cols-3 gap-3 max-sm:grid-cols-1">
          <TextField label="Quiet from" type="time" hint="Then only critical ones" {...text("quiet_from")} />
          <TextField label="Quiet to" type="time" {...text("quiet_to")} />
          <TextField label="Time zone" names={ZONES} {...text("timezone")} />
        </div>
        <Check on={form.all_alerts} onChange={(all_alerts) => change({ all_alerts })}>
          Every alert, not only those of rules that name it
        </Check>
        <FormFoot refusal={refusal} submit={busy ? "Saving…" : "Save"} disabled={busy} onClose={onClose} />
      </form>
    </Dialog>
  );
}
