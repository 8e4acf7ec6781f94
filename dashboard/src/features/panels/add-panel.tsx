import { Plus } from "lucide-react";
import { Popover } from "@/components/ui/popover";
import { edit, useBoards } from "./boards";
import { addPanel, freeId, KIND_NAMES, KINDS, type Kind, newPanel } from "./layout";

function add(kind: Kind): void {
  edit((layout) => {
    const id = freeId(layout);
    const open = layout.sections.findIndex((section) => !section.folded);
    useBoards.setState({ editing: id });
    return addPanel(layout, newPanel(kind, id), Math.max(0, open));
  });
}

export function AddPanel() {
  return (
    <Popover
      label="Add panel"
      className="flex w-52 flex-col py-1"
      trigger={
        <>
          <Plus size={13} aria-hidden="true" /> Panel
        </>
      }
    >
      {(close) =>
        KINDS.map((kind) => (
          <button
            key={kind}
            type="button"
            className="h-8 px-3 text-left text-xs hover:bg-hover"
            onClick={() => {
              close();
              add(kind);
            }}
          >
            {KIND_NAMES[kind]}
          </button>
        ))
      }
    </Popover>
  );
}
