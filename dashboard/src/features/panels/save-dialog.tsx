import { useState } from "react";
import type { SavedDashboard } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { describe } from "@/components/ui/confirm";
import { Dialog } from "@/components/ui/dialog";
import { Field, Input } from "@/components/ui/input";
import type { Board } from "./boards";
import { saveAs } from "./save";

interface Props {
  board: Board;
  onSaved(saved: SavedDashboard): void;
  onClose(): void;
}

export function SaveDialog({ board, onSaved, onClose }: Props) {
  const [name, setName] = useState(board.id === null ? "" : `${board.name} (copy)`);
  const [project, setProject] = useState(board.project);
  const [error, setError] = useState<string>();
  const save = async () => {
    try {
      const saved = await saveAs(board, name.trim(), project.trim());
      onClose();
      onSaved(saved);
    } catch (cause) {
      setError(describe(cause));
    }
  };
  return (
    <Dialog title="Save dashboard" onClose={onClose} className="max-w-sm">
      <form
        className="flex flex-col gap-3 p-4"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <Field label="Name" error={error} hint="With the runs, the group and the baseline that are on show now.">
          {(props) => (
            <Input {...props} required maxLength={255} value={name} onChange={(event) => setName(event.target.value)} />
          )}
        </Field>
        <Field label="Project" hint="Dashboards are listed by project.">
          {(props) => (
            <Input {...props} maxLength={255} value={project} onChange={(event) => setProject(event.target.value)} />
          )}
        </Field>
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={name.trim() === ""}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
