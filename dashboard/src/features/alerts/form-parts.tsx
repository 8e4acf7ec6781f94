import type { InputHTMLAttributes, ReactNode, SelectHTMLAttributes } from "react";
import { Field, Input, Select } from "@/components/ui/input";

interface Common {
  label: string;
  hint?: string;
  error?: string | undefined;
  onText(text: string): void;
}

type TextProps = Common &
  Omit<InputHTMLAttributes<HTMLInputElement>, "id"> & {
    /** Offered while typing; anything else may be typed too. */
    names?: readonly string[];
  };

const OFFERED = 300;

export function TextField({ label, hint, error, onText, names, ...rest }: TextProps) {
  return (
    <Field label={label} {...(hint !== undefined && { hint })} error={error}>
      {(props) => (
        <>
          <Input
            {...props}
            {...rest}
            {...(names && { list: `${props.id}-names` })}
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => onText(event.target.value)}
          />
          {names && (
            <datalist id={`${props.id}-names`}>
              {names.slice(0, OFFERED).map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

type ChoiceProps = Common &
  Omit<SelectHTMLAttributes<HTMLSelectElement>, "id"> & { options: Readonly<Record<string, string>> };

export function ChoiceField({ label, hint, error, onText, options, ...rest }: ChoiceProps) {
  return (
    <Field label={label} {...(hint !== undefined && { hint })} error={error}>
      {(props) => (
        <Select {...props} {...rest} onChange={(event) => onText(event.target.value)}>
          {Object.entries(options).map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

export function Check({ on, onChange, children }: { on: boolean; onChange(on: boolean): void; children: ReactNode }) {
  return (
    <label className="flex items-center gap-2 text-xs">
      <input type="checkbox" checked={on} onChange={(event) => onChange(event.target.checked)} />
      {children}
    </label>
  );
}
