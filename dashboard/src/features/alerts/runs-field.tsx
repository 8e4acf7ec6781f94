import { keepPreviousData } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useResource } from "@/hooks/resource";
import { formatCount } from "@/lib/format";
import { TextField } from "./form-parts";

const TYPING_MS = 300;

interface Props {
  value: string;
  error: string | undefined;
  onText(text: string): void;
}

/** Which runs a rule is about, and how many of those that are known it finds now. */
export function RunsField({ value, error, onText }: Props) {
  const [asked, setAsked] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(value), TYPING_MS);
    return () => clearTimeout(timer);
  }, [value]);
  const query = { filter: asked, sort: "", descending: true, column: [], limit: 1 };
  const found = useResource(["rule-runs", asked], (it, signal) => it.runTable(query, signal), {
    placeholder: keepPreviousData,
  });
  const matched =
    found.data && !found.error
      ? `It finds ${formatCount(found.data.matched)} of ${formatCount(found.data.total)} runs now; those that go on are watched.`
      : "";
  return (
    <TextField
      label="Runs"
      hint={matched || "Such as project:vision and tag:prod; empty: every run that goes on."}
      placeholder="project:vision and tag:prod"
      className="font-mono"
      {...{ value, error, onText }}
    />
  );
}
