import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { describe } from "@/components/ui/confirm";
import { Dialog } from "@/components/ui/dialog";
import { FormFoot } from "@/components/ui/form-foot";
import { CodeArea, Field, Input, Select } from "@/components/ui/input";
import { requests } from "@/data/source";
import { pathOf } from "@/lib/routes";
import { useCluster } from "@/stores/cluster";
import { toast } from "@/stores/overlay";
import { addressOf } from "@/stores/view";
import { EMPTY_FORM, readForm, type TaskForm } from "./task-form";

export function CreateDialog({ onClose }: { onClose(): void }) {
  const { datasets, loaded } = useCluster();
  const [, navigate] = useLocation();
  const [form, setForm] = useState<TaskForm>(EMPTY_FORM);
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  // Until one is chosen it is the first, also when the list arrives after the dialog was opened.
  const [chosen, choose] = useState<string | null>(null);
  const dataset = chosen ?? datasets[0]?.id ?? "";
  const read = readForm({ ...form, dataset });
  const errors = tried && "errors" in read ? read.errors : {};
  const change = (part: Partial<TaskForm>) => setForm((old) => ({ ...old, ...part }));

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if ("errors" in read) return;
    setBusy(true);
    try {
      const { task_id } = await requests().createTask(read.request);
      toast(`Task ${read.request.name} was accepted.`, "ok");
      onClose();
      navigate(addressOf(pathOf("tasks", task_id)));
    } catch (cause) {
      setRefusal(describe(cause));
      setBusy(false);
    }
  };

  return (
    <Dialog title="New task" onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3 p-4" noValidate>
        <Field label="Name" hint="For example imagenet-resnet50" error={errors.name}>
          {(props) => <Input {...props} value={form.name} onChange={(event) => change({ name: event.target.value })} />}
        </Field>
        <div className="grid grid-cols-2 gap-3 max-sm:grid-cols-1">
          <Field label="Type" hint="training is built in" error={errors.type}>
            {(props) => (
              <Input {...props} value={form.type} onChange={(event) => change({ type: event.target.value })} />
            )}
          </Field>
          <Field
            label="Dataset"
            hint={datasets.length ? "What it reads" : loaded ? "None is registered yet" : "Loading…"}
            error={errors.dataset}
          >
            {(props) => (
              <Select {...props} value={dataset} onChange={(event) => choose(event.target.value)}>
                <option value="">choose…</option>
                {datasets.map((one) => (
                  <option key={one.id} value={one.id}>
                    {one.name ?? one.id}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          <Field label="Workers" hint="4, or 2..8 for as many as fit" error={errors.workers}>
            {(props) => (
              <Input {...props} value={form.workers} onChange={(event) => change({ workers: event.target.value })} />
            )}
          </Field>
          <Field
            label="Hang timeout"
            hint="Seconds without a step until a rank is ended; off; empty: learned"
            error={errors.hangTimeout}
          >
            {(props) => (
              <Input
                {...props}
                inputMode="text"
                value={form.hangTimeout}
                onChange={(event) => change({ hangTimeout: event.target.value })}
              />
            )}
          </Field>
          <Field label="GPUs per worker" hint="Cards that each rank alone holds" error={errors.gpus}>
            {(props) => (
              <Input {...props} value={form.gpus} onChange={(event) => change({ gpus: event.target.value })} />
            )}
          </Field>
          <Field label="Spares" hint="Warm interpreters per host, for fast restarts" error={errors.spares}>
            {(props) => (
              <Input {...props} value={form.spares} onChange={(event) => change({ spares: event.target.value })} />
            )}
          </Field>
        </div>
        <label className="flex items-center gap-2 text-xs text-muted">
          <input
            type="checkbox"
            checked={form.excludeStragglers}
            onChange={(event) => change({ excludeStragglers: event.target.checked })}
          />
          Leave hosts that are far slower than the others
        </label>
        <Field label="Config" hint="JSON, handed to the training script" error={errors.config}>
          {(props) => (
            <CodeArea
              {...props}
              rows={6}
              value={form.config}
              onChange={(event) => change({ config: event.target.value })}
            />
          )}
        </Field>
        <FormFoot
          refusal={refusal}
          submit={busy ? "Submitting…" : "Start task"}
          disabled={busy || !loaded}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}
