import { Select } from "@/components/ui/input";
import { SMOOTHING_KINDS, type SmoothingKind } from "@/lib/smoothing";

export interface CurveOptions {
  logX: boolean;
  logY: boolean;
  clip: boolean;
  smoothing: number;
  smoothingKind: SmoothingKind;
}

interface Props {
  value: CurveOptions;
  onChange(change: Partial<CurveOptions>): void;
}

const KINDS: Record<SmoothingKind, string> = { ema: "Exponential", mean: "Running mean", gauss: "Gaussian" };

const FLAGS = [
  ["logX", "Log x", "Steps or times on a logarithmic axis"],
  ["logY", "Log y", "Values on a logarithmic axis"],
  ["clip", "Clip outliers", "The axis leaves out the lowest and the highest 2 % of all points"],
] as const;

/** How lines are drawn, for the metrics page as a whole or for one panel. */
export function CurveOptionFields({ value, onChange }: Props) {
  return (
    <fieldset aria-label="Curves" className="flex flex-wrap items-center gap-x-4 gap-y-2 text-xs">
      {FLAGS.map(([name, label, title]) => (
        <label key={name} title={title} className="flex items-center gap-1.5">
          <input type="checkbox" checked={value[name]} onChange={() => onChange({ [name]: !value[name] })} />
          {label}
        </label>
      ))}
      <Select
        aria-label="Smoothing kind"
        value={value.smoothingKind}
        onChange={(event) => onChange({ smoothingKind: event.target.value as SmoothingKind })}
      >
        {SMOOTHING_KINDS.map((kind) => (
          <option key={kind} value={kind}>
            {KINDS[kind]}
          </option>
        ))}
      </Select>
      <label className="flex items-center gap-2">
        Smoothing
        <input
          type="range"
          aria-label="Smoothing amount"
          min={0}
          max={0.99}
          step={0.01}
          value={value.smoothing}
          onChange={(event) => onChange({ smoothing: Number(event.target.value) })}
          className="w-24 accent-(--accent)"
        />
        <output className="w-7 font-mono">{value.smoothing.toFixed(2)}</output>
      </label>
    </fieldset>
  );
}
