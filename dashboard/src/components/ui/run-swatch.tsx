import { runStyles } from "@/lib/colors";
import { useTheme } from "@/stores/theme";

/** A short piece of the run's own line: colour and dash. */
export function RunSwatch({ run }: { run: string }) {
  const theme = useTheme((state) => state.theme);
  const style = runStyles.of(run);
  return (
    <svg width="14" height="10" viewBox="0 0 14 10" aria-hidden="true" className="shrink-0">
      <line
        x1="0"
        y1="5"
        x2="14"
        y2="5"
        stroke={style[theme]}
        strokeWidth="3"
        strokeDasharray={style.dash
          .slice(0, 2)
          .map((n) => n * 0.6)
          .join(" ")}
      />
    </svg>
  );
}
