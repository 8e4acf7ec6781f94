import { useTheme } from "@/stores/theme";
import { heatColor } from "./heatmap";

export function HeatLegend({ metric, click }: { metric: string; click: string }) {
  const time = /time|latency|_ms$|_s$/.test(metric);
  const dark = useTheme((state) => state.theme) === "dark";
  return (
    <p className="mt-2 flex items-center gap-1.5 text-2xs text-muted">
      0.5× {time ? "faster" : "lower"}
      {[0.5, 0.7, 0.85, 1, 1.2, 1.5, 2].map((ratio) => (
        <span
          key={ratio}
          aria-hidden="true"
          className="h-2.5 w-5 rounded-[2px]"
          style={{ background: heatColor(ratio, dark) }}
        />
      ))}
      2× {time ? "slower" : "higher"}. {click}
    </p>
  );
}
