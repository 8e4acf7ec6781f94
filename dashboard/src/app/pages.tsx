import { type ComponentType, lazy, Suspense } from "react";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Page as Frame } from "@/components/ui/page";
import { PageLink } from "@/components/ui/page-link";
import { type Page, type Place, pageOf } from "@/lib/routes";
import { ErrorBoundary } from "./error-boundary";

type PageProps = { id: string | null };

type Load = () => Promise<{ default: ComponentType<PageProps> }>;

/** One chunk per page: the first screen loads only what it shows. */
const LOADS: Record<Page, Load> = {
  overview: () => import("@/features/overview/overview-page"),
  runs: () => import("@/features/runs/runs-page"),
  metrics: () => import("@/features/metrics/metrics-page"),
  dashboards: () => import("@/features/panels/dashboards-page"),
  cluster: () => import("@/features/cluster/cluster-page"),
  data: () => import("@/features/data/data-page"),
  checkpoints: () => import("@/features/checkpoints/checkpoints-page"),
  tasks: () => import("@/features/tasks/tasks-page"),
  logs: () => import("@/features/logs/logs-page"),
  alerts: () => import("@/features/alerts/alerts-page"),
  settings: () => import("@/features/settings/settings-page"),
};
const VIEWS = Object.fromEntries(Object.entries(LOADS).map(([page, load]) => [page, lazy(load)])) as unknown as Record<
  Page,
  ComponentType<PageProps>
>;

/** Asks for a page's code before React has got so far as to want it. */
export function preloadPage(path: string): void {
  const { page } = pageOf(path);
  // A failure shows when the page itself asks.
  if (page !== "unknown") LOADS[page]().catch(() => {});
}

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
