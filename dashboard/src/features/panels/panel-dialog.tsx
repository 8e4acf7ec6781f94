import { useState } from "react";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Field, Input } from "@/components/ui/input";
import { NameList, toChoices } from "@/components/ui/name-picker";
import { edit, useBoards } from "./boards";
import { changePanel, KIND_NAMES, type Media, type Panel } from "./layout";
import { LineFields } from "./line-fields";
import { RunFields } from "./run-fields";
import { useMediaKeys } from "./use-media-keys";

/** What a panel shows. Nothing changes before Done. */
export function PanelDialog({ panel }: { panel: Panel }) {
  const [draft, setDraft] = useState(panel);
  const set = (change: Partial<Panel>) => setDraft((old) => ({ ...old, ...change }) as Panel);
  const close = () => useBoards.setState({ editing: null });
  return (
    <Dialog title={`${KIND_NAMES[panel.kind]} panel`} onClose={close} className="max-w-xl!">
      <form
        className="flex max-h-[75vh] flex-col gap-3 overflow-y-auto p-4"
        onSubmit={(event) => {
          event.preventDefault();
          edit((layout) => changePanel(layout, panel.id, draft));
          close();
        }}
      >
        <Field label="Title" hint="Empty: it is named after what it shows.">
          {(props) => (
            <Input
              {...props}
              maxLength={255}
              value={draft.title}
              onChange={(event) => set({ title: event.target.value })}
            />
          )}
        </Field>
        <KindFields draft={draft} set={set} />
        <div className="flex justify-end gap-2 border-t border-line pt-3">
          <Button onClick={close}>Cancel</Button>
          <Button look="primary" type="submit">
            Done
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function KindFields({ draft, set }: { draft: Panel; set(change: Partial<Panel>): void }) {
  switch (draft.kind) {
    case "line":
      return <LineFields draft={draft} set={set} />;
    case "markdown":
      return (
        <Field label="Markdown" hint="Headings, lists, code, bold, italic and links; HTML stays text.">
          {(props) => (
            <textarea
              {...props}
              rows={12}
              maxLength={20_000}
              value={draft.text}
              className="rounded-md border border-line-strong bg-surface p-2 font-mono text-xs"
              onChange={(event) => set({ text: event.target.value })}
            />
          )}
        </Field>
      );
    case "histogram":
    case "image":
    case "table":
      return <MediaFields draft={draft} set={set} />;
    default:
      return <RunFields draft={draft} set={set} />;
  }
}

function MediaFields({ draft, set }: { draft: Media; set(change: Partial<Panel>): void }) {
  const { keys } = useMediaKeys(draft.kind, "");
  return (
    <div className="rounded-md border border-line">
      <NameList
        single
        label="Key"
        choices={toChoices(keys.map((key) => key.metric))}
        chosen={draft.key ? [draft.key] : []}
        onChange={([key = ""]) => set({ key })}
      />
    </div>
  );
}
