import { type ComponentType, useEffect, useState } from "react";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Page as Frame } from "@/components/ui/page";
import { PageLink } from "@/components/ui/page-link";
import { opening } from "@/data/opening";
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
/** Pages whose code is here. */
const views = new Map<Page, ComponentType<PageProps>>();

async function load(page: Page): Promise<void> {
  views.set(page, (await LOADS[page]()).default);
}

/** Asks for a page's code before React has got so far as to want it. */
export function preloadPage(path: string): void {
  const { page } = pageOf(path);
  // A failure shows when the page itself asks.
  if (page !== "unknown") load(page).catch(() => {});
}

export function PageView({ place }: { place: Place }) {
  if (place.page === "unknown") {
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
      <LoadedPage page={place.page} id={place.id} />
    </ErrorBoundary>
  );
}

/** Without React's lazy, which shows nothing of a page until its place holder has been on screen for 300 ms. */
function LoadedPage({ page, id }: PageProps & { page: Page }) {
  const [error, setError] = useState<unknown>(null);
  const [, setHere] = useState(views.has(page));
  useEffect(() => {
    if (views.has(page)) setHere(true);
    else load(page).then(() => setHere(true), setError);
  }, [page]);
  if (error !== null) throw error;
  const View = views.get(page);
  if (!View) return <Skeleton rows={10} />;
  return (
    <>
      <View id={id} />
      <Shown />
    </>
  );
}

/** Stands behind a page: its effect runs after the page's own. */
function Shown() {
  useEffect(() => opening.shown(), []);
  return null;
}
