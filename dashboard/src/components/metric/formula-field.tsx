import { useState } from "react";
import { Button } from "@/components/ui/button";
import { Field, Input } from "@/components/ui/input";
import { problemOf } from "@/lib/formula";

/** A formula as it is typed: what is wrong with it and where, or a button that takes it. */
export function FormulaField({ onAdd }: { onAdd(formula: string): void }) {
  const [text, setText] = useState("");
  const problem = text.trim() === "" ? null : problemOf(text);
  const take = () => {
    if (text.trim() === "" || problem !== null) return;
    onAdd(text.trim());
    setText("");
  };
  return (
    <div className="flex flex-col gap-2">
      <Field
        label="Formula"
        hint={
          'train/loss - val/loss · a slash divides with spaces around it · "odd name" in quotes · + - * / ^ abs exp log log10 sqrt min max'
        }
        error={problem ?? undefined}
      >
        {(props) => (
          <Input
            {...props}
            value={text}
            spellCheck={false}
            placeholder="train/loss - val/loss"
            className="font-mono"
            onChange={(event) => setText(event.target.value)}
            // It may stand inside a form, which Enter must not send.
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              event.preventDefault();
              take();
            }}
          />
        )}
      </Field>
      <Button className="self-end" onClick={take} disabled={text.trim() === "" || problem !== null}>
        Add formula
      </Button>
    </div>
  );
}
