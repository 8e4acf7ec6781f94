import { type ComponentType, lazy, Suspense } from "react";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Page as Frame } from "@/components/ui/page";
import { PageLink } from "@/components/ui/page-link";
import type { Page, Place } from "@/lib/routes";
import { ErrorBoundary } from "./error-boundary";

type PageProps = { id: string | null };

/** One chunk per page: the first screen loads only what it shows. */
const VIEWS: Record<Page, ComponentType<PageProps>> = {
  overview: lazy(() => import("@/features/overview/overview-page")),
  runs: lazy(() => import("@/features/runs/runs-page")),
  metrics: lazy(() => import("@/features/metrics/metrics-page")),
  cluster: lazy(() => import("@/features/cluster/cluster-page")),
  data: lazy(() => import("@/features/data/data-page")),
  checkpoints: lazy(() => import("@/features/checkpoints/checkpoints-page")),
  tasks: lazy(() => import("@/features/tasks/tasks-page")),
  logs: lazy(() => import("@/features/logs/logs-page")),
  alerts: lazy(() => import("@/features/alerts/alerts-page")),
  settings: lazy(() => import("@/features/settings/settings-page")),
};

export function PageView({ place }: { place: Place }) {
  const View = place.page === "unknown" ? undefined : VIEWS[place.page];
  if (!View) {
    return (
      <Frame title="Not found">
        <Empty
          title="There is no such page"
          action={
            <PageLink page="overview" className="font-medium text-accent">
              To the overview
            </PageLink>
          }
        >
          The address does not name a page of this dashboard.
        </Empty>
      </Frame>
    );
  }
  return (
    <ErrorBoundary key={`${place.page}/${place.id}`}>
      <Suspense fallback={<Skeleton rows={10} />}>
        <View id={place.id} />
      </Suspense>
    </ErrorBoundary>
  );
}
