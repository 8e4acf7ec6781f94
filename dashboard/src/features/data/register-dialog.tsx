import { type FormEvent, useState } from "react";
import { describe } from "@/components/ui/confirm";
import { Dialog } from "@/components/ui/dialog";
import { FormFoot } from "@/components/ui/form-foot";
import { Field, Input } from "@/components/ui/input";
import { requests } from "@/data/source";
import { toast } from "@/stores/overlay";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

export function RegisterDialog({ onClose }: { onClose(): void }) {
  const [id, setId] = useState("");
  const [path, setPath] = useState("");
  const [format, setFormat] = useState("");
  const [tried, setTried] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const idError = NAME.test(id)
    ? undefined
    : "Letters, digits, dot, dash and underscore; it begins with a letter or digit.";
  const pathError = path.trim() ? undefined : "A folder, a pattern such as data/*.parquet, or an s3:// address.";
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (idError || pathError) return;
    try {
      await requests().registerDataset({ id, path: path.trim(), format: format.trim() });
      toast(`Dataset ${id} is registered.`, "ok");
      onClose();
    } catch (cause) {
      setError(describe(cause));
    }
  };
  return (
    <Dialog title="Register dataset" onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3 p-4" noValidate>
        <Field label="Id" hint="How tasks name it, for example ds-001" error={tried ? idError : undefined}>
          {(props) => <Input {...props} value={id} onChange={(event) => setId(event.target.value)} />}
        </Field>
        <Field label="Path" hint="As the workers see it" error={tried ? pathError : undefined}>
          {(props) => (
            <Input {...props} value={path} onChange={(event) => setPath(event.target.value)} className="font-mono" />
          )}
        </Field>
        <Field label="Format" hint="Empty: told by the names of the files">
          {(props) => <Input {...props} value={format} onChange={(event) => setFormat(event.target.value)} />}
        </Field>
        <FormFoot refusal={error} submit="Register" onClose={onClose} />
      </form>
    </Dialog>
  );
}
