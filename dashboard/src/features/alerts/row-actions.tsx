import { Pencil, Trash2 } from "lucide-react";
import { Button } from "@/components/ui/button";
import { useTargetTest } from "./use-target-test";

interface Props {
  kind: "rule" | "target";
  name: string;
  /** Who gets the test message. */
  targets: readonly string[];
  onEdit(): void;
  onDelete(): void;
}

/** Test, edit and delete of a rule or a target; below them what came of the test. */
export function RowActions({ kind, name, targets, onEdit, onDelete }: Props) {
  const about = `${kind} ${name}`;
  const { busy, results, test } = useTargetTest();
  return (
    <>
      <div className="flex shrink-0 items-center gap-1">
        {targets.length > 0 && (
          <Button
            needs="POST /alerts/targets/{name}/test"
            aria-label={`Test ${about}`}
            disabled={busy}
            onClick={() => void test(targets)}
          >
            {busy ? "Sending…" : "Test"}
          </Button>
        )}
        <Button needs={`PUT /alerts/${kind}s/{name}`} look="quiet" icon aria-label={`Edit ${about}`} onClick={onEdit}>
          <Pencil size={13} />
        </Button>
        <Button
          needs={`DELETE /alerts/${kind}s/{name}`}
          look="quiet"
          icon
          aria-label={`Delete ${about}`}
          onClick={onDelete}
        >
          <Trash2 size={13} />
        </Button>
      </div>
      <div role="status" aria-label={`Test of ${about}`} className="w-full empty:hidden">
        {results.map((result) => (
          <p key={result.target} className={result.ok ? "text-ok" : "text-bad"}>
            {result.text}
          </p>
        ))}
      </div>
    </>
  );
}
