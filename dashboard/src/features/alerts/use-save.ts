/** Sends a form. What the server refuses is told at its field until that is changed, or below the form. */
import { type FormEvent, useState } from "react";
import { ApiError } from "@/api/client";
import { describe } from "@/components/ui/confirm";
import type { Errors } from "./rule-form";

type Read<F, R> = { request: R } | { errors: Errors<keyof F & string> };

interface Refusal<F> {
  field: (keyof F & string) | null;
  text: string;
  /** The form that was refused. */
  form: F;
}

export function useSave<F extends object, R>(form: F, read: Read<F, R>, save: (request: R) => Promise<unknown>) {
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Refusal<F> | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    setRefused(null);
    if ("errors" in read) return;
    setBusy(true);
    try {
      await save(read.request);
    } catch (cause) {
      const named = cause instanceof ApiError ? cause.field : null;
      const field = named !== null && named in form ? (named as keyof F & string) : null;
      setRefused({ field, text: describe(cause), form });
      setBusy(false);
    }
  };
  const own: Errors<keyof F & string> = tried && "errors" in read ? read.errors : {};
  if (!refused?.field) return { submit, busy, errors: own, refusal: refused?.text ?? null };
  const isSame = refused.form[refused.field] === form[refused.field];
  const errors: Errors<keyof F & string> = isSame ? { ...own, [refused.field]: refused.text } : own;
  return { submit, busy, errors, refusal: null };
}
