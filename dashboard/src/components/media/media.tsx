import { lazy, Suspense } from "react";
import { Skeleton } from "@/components/ui/empty";

const Grid = lazy(async () => ({ default: (await import("./media-grid")).MediaGrid }));

/** MediaGrid, loaded when somebody looks: pages of numbers do not carry it. */
export function Media({ runs, quiet = false }: { runs: readonly string[]; quiet?: boolean }) {
  return (
    <Suspense fallback={quiet ? null : <Skeleton rows={6} />}>
      <Grid runs={runs} quiet={quiet} />
    </Suspense>
  );
}
