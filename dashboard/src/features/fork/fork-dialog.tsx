import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { describe } from "@/components/ui/confirm";
import { Dialog } from "@/components/ui/dialog";
import { FormFoot } from "@/components/ui/form-foot";
import { CodeArea, Field, Input } from "@/components/ui/input";
import { requests } from "@/data/source";
import { formatCount } from "@/lib/format";
import { pathOf } from "@/lib/routes";
import { useCluster } from "@/stores/cluster";
import { type ForkPlace, toast, useOverlay } from "@/stores/overlay";
import { addressOf } from "@/stores/view";
import { type ForkForm, readFork } from "./fork-form";

/** A new task from a checkpoint of another one. Which one it is the server decides, and says. */
export default function ForkDialog({ place }: { place: ForkPlace }) {
  const task = useCluster((state) => state.tasks.find((one) => one.id === place.task_id));
  const [, navigate] = useLocation();
  const [form, setForm] = useState<ForkForm>({ name: "", changes: "", skip: "" });
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const read = readFork(form, place);
  const errors = tried && "errors" in read ? read.errors : {};
  const change = (part: Partial<ForkForm>) => setForm((old) => ({ ...old, ...part }));
  const close = () => useOverlay.setState({ fork: null });

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if ("errors" in read) return;
    setBusy(true);
    try {
      const { task_id, from_step } = await requests().forkTask(place.task_id, read.request);
      toast(`The fork begins with step ${formatCount(from_step)}.`, "ok");
      useOverlay.setState({ fork: null, incident: null });
      navigate(addressOf(pathOf("tasks", task_id)));
    } catch (cause) {
      setRefusal(describe(cause));
      setBusy(false);
    }
  };

  return (
    <Dialog title={`Fork ${task?.name ?? place.task_id}`} onClose={close}>
      <form onSubmit={submit} className="flex flex-col gap-3 p-4" noValidate>
        <p className="text-xs leading-5 text-muted">
          A new task goes on from {where(place)} and its place in the data. {task?.name ?? "The other one"} is not
          touched.
        </p>
        <Field label="Name" hint={`Empty: ${task?.name ?? "as the other"}`} error={errors.name}>
          {(props) => <Input {...props} value={form.name} onChange={(event) => change({ name: event.target.value })} />}
        </Field>
        <Field label="Changed config" hint="KEY=VALUE per line, such as lr=1e-4" error={errors.changes}>
          {(props) => (
            <CodeArea
              {...props}
              rows={3}
              value={form.changes}
              onChange={(event) => change({ changes: event.target.value })}
            />
          )}
        </Field>
        <Field
          label="Leave out the batches of steps"
          hint="Such as 1200..1260; it then begins before them"
          error={errors.skip}
        >
          {(props) => <Input {...props} value={form.skip} onChange={(event) => change({ skip: event.target.value })} />}
        </Field>
        <FormFoot refusal={refusal} submit="Fork" disabled={busy} onClose={close} />
      </form>
    </Dialog>
  );
}

function where(place: ForkPlace): string {
  if (place.checkpoint_id !== null && place.step !== null) return `the checkpoint of step ${formatCount(place.step)}`;
  if (place.step === null) return "its newest good checkpoint";
  return `the newest good checkpoint at or before step ${formatCount(place.step)}`;
}
