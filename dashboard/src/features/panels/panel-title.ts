/** What a panel is called when nobody named it. Pure. */
import { columnTitle } from "@/lib/column-title";
import { KIND_NAMES, type Panel } from "./layout";

const LISTED = 3;

export function titleOf(panel: Panel): string {
  return panel.title || madeTitle(panel) || KIND_NAMES[panel.kind] || panel.kind;
}

function madeTitle(panel: Panel): string {
  switch (panel.kind) {
    case "line": {
      const names = [...panel.metrics, ...panel.formulas];
      const listed = names.slice(0, LISTED).join(", ");
      return names.length > LISTED ? `${listed} and ${names.length - LISTED} more` : listed;
    }
    case "scatter":
      return panel.x && panel.y ? `${columnTitle(panel.y)} over ${columnTitle(panel.x)}` : "";
    case "bar":
    case "number":
      return columnTitle(panel.column);
    case "parallel":
      return panel.target ? `What explains ${columnTitle(panel.target)}` : "";
    case "markdown":
      return /^#{1,6}\s+(.*)$/m.exec(panel.text)?.[1]?.slice(0, 80) ?? "";
    default:
      return panel.key;
  }
}
