import { formatValue, UNKNOWN } from "@/lib/format";
import { roundFigure, SYSTEM_FIGURES, type SystemFigure } from "@/lib/system-figures";
import { useCluster } from "@/stores/cluster";

function Figure({ figure }: { figure: SystemFigure }) {
  const value = useCluster((state) => roundFigure(state.metrics?.[figure.key]));
  return (
    <div
      data-figure={figure.key}
      title={value === null ? `${figure.label}: ${figure.empty}` : figure.label}
      className="flex min-w-0 items-baseline gap-1.5 max-md:flex-col max-md:gap-0"
    >
      <dt className="truncate text-2xs text-faint">{figure.short}</dt>
      <dd className="font-mono whitespace-nowrap">
        {value === null ? UNKNOWN : formatValue(value)}
        {value !== null && <span className="ml-0.5 font-sans text-2xs text-faint">{figure.unit}</span>}
      </dd>
    </div>
  );
}

/** The coordinator's own figures, below the top bar of every page. */
export function SystemStrip() {
  return (
    <dl
      aria-label="System"
      className="flex shrink-0 gap-x-6 border-b border-line bg-surface px-4 py-1 text-xs leading-5 max-md:grid max-md:grid-cols-4 max-md:gap-x-2 max-md:px-3"
    >
      {SYSTEM_FIGURES.map((figure) => (
        <Figure key={figure.key} figure={figure} />
      ))}
    </dl>
  );
}
