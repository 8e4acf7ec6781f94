import { useMemo } from "react";
import { useRunsOnShow } from "@/hooks/runs";
import { groupStyles } from "@/lib/colors";
import { groupOf } from "@/lib/run-groups";
import { useTheme } from "@/stores/theme";
import { useView } from "@/stores/view";

const MOST = 40;

/** Which line is which group's while runs are grouped, and what the band around it is. */
export function GroupLegend() {
  const runs = useRunsOnShow();
  const groupBy = useView((view) => view.groupBy);
  const theme = useTheme((state) => state.theme);
  const groups = useMemo(() => {
    const counts = new Map<string, number>();
    if (!groupBy) return counts;
    for (const run of runs) counts.set(groupOf(run, groupBy), (counts.get(groupOf(run, groupBy)) ?? 0) + 1);
    return counts;
  }, [runs, groupBy]);
  if (groups.size === 0) return null;
  return (
    <ul aria-label={`Groups by ${groupBy}`} className="flex flex-wrap gap-x-4 gap-y-1 text-xs">
      {[...groups].slice(0, MOST).map(([label, count]) => (
        <li key={label} className="flex items-center gap-1.5">
          <span
            aria-hidden="true"
            className="h-0.5 w-3.5 shrink-0 rounded-full"
            style={{ background: groupStyles.of(label)[theme] }}
          />
          <span className="max-w-48 truncate">{label}</span>
          <span className="text-faint">{count}</span>
        </li>
      ))}
      <li className="text-faint">
        mean ± one standard deviation{groups.size > MOST && `, the first ${MOST} of ${groups.size} groups`}
      </li>
    </ul>
  );
}
