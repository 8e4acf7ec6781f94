import { ChevronDown, ChevronRight, Trash2 } from "lucide-react";
import { Button } from "@/components/ui/button";
import { edit, useBoards } from "./boards";
import { changeSection, removeSection, type Section } from "./layout";
import { PanelFrame } from "./panel-frame";

interface Props {
  section: Section;
  place: number;
  /** The only one that is left cannot be removed while it has panels. */
  removable: boolean;
}

/** A heading that folds, and its panels in a grid of twelve columns; one column on a phone. */
export function BoardSection({ section, place, removable }: Props) {
  const drop = useBoards((state) => (state.drop?.section === place ? state.drop.index : null));
  const Icon = section.folded ? ChevronRight : ChevronDown;
  const last = section.panels.length - 1;
  const name = section.title || "Untitled section";
  return (
    <section data-section={place} aria-label={name} className="flex flex-col gap-2">
      <header className="flex items-center gap-1">
        <h2 className="flex min-w-0 items-center">
          <button
            type="button"
            aria-expanded={!section.folded}
            aria-label={`${section.folded ? "Unfold" : "Fold"} ${name}`}
            className="flex size-7 shrink-0 items-center justify-center rounded text-muted hover:bg-hover"
            onClick={() => edit((layout) => changeSection(layout, place, { folded: !section.folded }))}
          >
            <Icon size={14} aria-hidden="true" />
          </button>
          <input
            aria-label={`Name of section ${place + 1}`}
            value={section.title}
            placeholder="Untitled section"
            maxLength={255}
            size={Math.max(12, section.title.length)}
            className="h-7 min-w-0 rounded bg-transparent px-1 text-sm font-semibold hover:bg-hover focus:bg-surface"
            onChange={(event) => edit((layout) => changeSection(layout, place, { title: event.target.value }))}
          />
        </h2>
        <span className="text-xs text-faint">{section.panels.length}</span>
        {removable && (
          <Button
            look="quiet"
            icon
            aria-label={`Remove section ${name}`}
            title="Its panels move to the section before it"
            onClick={() => edit((layout) => removeSection(layout, place))}
          >
            <Trash2 size={13} />
          </Button>
        )}
      </header>
      {!section.folded && (
        <div className="grid auto-rows-[56px] grid-cols-12 gap-3 max-md:grid-cols-1">
          {section.panels.map((panel, index) => (
            <PanelFrame
              key={panel.id}
              panel={panel}
              drop={drop === index ? "before" : drop === index + 1 && index === last ? "after" : null}
            />
          ))}
          {section.panels.length === 0 && (
            <p className="col-span-full row-span-2 flex items-center justify-center rounded-lg border border-dashed border-line-strong text-xs text-muted">
              {drop === null ? "No panels here yet: add one, or drag one here." : "Drop it here."}
            </p>
          )}
        </div>
      )}
    </section>
  );
}
