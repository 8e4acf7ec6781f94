import { useState } from "react";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Field, Input } from "@/components/ui/input";

/** The address holds the dashboard, the runs on show, the group and the baseline. */
export function ShareDialog({ onClose }: { onClose(): void }) {
  const [copied, setCopied] = useState(false);
  const link = location.href;
  return (
    <Dialog title="Share dashboard" onClose={onClose} className="max-w-md">
      <div className="flex flex-col gap-3 p-4">
        <Field
          label="Link"
          hint="Opens the saved dashboard with the runs that are on show here. Changes that are not saved stay here."
        >
          {(props) => <Input {...props} readOnly value={link} onFocus={(event) => event.target.select()} />}
        </Field>
        <Button
          look="primary"
          className="self-end"
          // A page that came over plain HTTP from another host has no clipboard: the field is selected, Ctrl-C copies it.
          disabled={!("clipboard" in navigator)}
          onClick={() => void navigator.clipboard.writeText(link).then(() => setCopied(true))}
        >
          {copied ? "Copied" : "Copy link"}
        </Button>
      </div>
    </Dialog>
  );
}
