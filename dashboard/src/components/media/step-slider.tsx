import { useEffect, useRef } from "react";
import { placeOf } from "@/lib/media";
import type { Position } from "./position";

interface Props {
  label: string;
  steps: readonly number[];
  position: Position;
}

/** Moves over the steps at which something was logged. Writes its own label: no render per step. */
export function StepSlider({ label, steps, position }: Props) {
  const slider = useRef<HTMLInputElement>(null);
  const output = useRef<HTMLOutputElement>(null);
  useEffect(() => {
    const show = () => {
      const at = position.step === null ? steps.length - 1 : placeOf(steps, position.step);
      const text = `step ${(steps[at] ?? 0).toLocaleString("en-US")}`;
      if (slider.current) {
        slider.current.value = String(at);
        slider.current.setAttribute("aria-valuetext", text);
      }
      if (output.current) output.current.textContent = text;
    };
    show();
    return position.subscribe(show);
  }, [steps, position]);
  return (
    <div className="flex items-center gap-3">
      <input
        ref={slider}
        type="range"
        aria-label={`Step of ${label}`}
        min={0}
        max={Math.max(0, steps.length - 1)}
        step={1}
        disabled={steps.length < 2}
        className="h-6 min-w-0 flex-1 accent-accent"
        onInput={(event) => {
          const at = Number(event.currentTarget.value);
          position.set(at >= steps.length - 1 ? null : (steps[at] ?? null));
        }}
      />
      <output ref={output} className="w-28 shrink-0 text-right font-mono text-2xs text-muted" />
    </div>
  );
}
