import { formatClock } from "@/lib/format";
import type { LogView } from "./log-view";

const SLICES = 120;
const HEIGHT = 32;

interface Props {
  view: LogView;
  onPick(time: number): void;
}

/** Lines over time: gray all, amber warnings, red errors. A click goes there. */
export function Histogram({ view, onPick }: Props) {
  const { from, to, all, warn, error } = view.histogram(SLICES);
  const most = Math.max(1, ...all);
  const size = (count: number) => (count === 0 ? 0 : Math.max(1.5, (count / most) * HEIGHT));
  return (
    <div className="shrink-0 border-b border-line px-3 pt-2">
      <svg
        viewBox={`0 0 ${SLICES} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Lines over time from ${formatClock(from)} to ${formatClock(to)}`}
        className="block h-8 w-full cursor-pointer"
        onPointerDown={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          onPick(from + ((event.clientX - box.left) / box.width) * (to - from));
        }}
      >
        {all.map((count, i) => {
          const [bad, late] = [size(error[i] ?? 0), size(warn[i] ?? 0)];
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: slices are positions
            <g key={i}>
              <rect x={i + 0.1} width={0.8} y={HEIGHT - size(count)} height={size(count)} fill="var(--line-strong)" />
              <rect x={i + 0.1} width={0.8} y={HEIGHT - bad - late} height={late} fill="var(--warn)" />
              <rect x={i + 0.1} width={0.8} y={HEIGHT - bad} height={bad} fill="var(--bad)" />
            </g>
          );
        })}
      </svg>
      <p className="flex justify-between py-0.5 text-2xs text-faint">
        <span>{formatClock(from)}</span>
        <span>{formatClock(to)}</span>
      </p>
    </div>
  );
}
