import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useEffect } from "react";
import { Router, useLocation } from "wouter";
import { useBrowserLocation } from "wouter/use-browser-location";
import { startFeed } from "@/data/feed";
import { pageOf } from "@/lib/routes";
import { syncAddress, useView } from "@/stores/view";
import { Banner } from "./banner";
import { listenKeys } from "./keyboard";
import { Overlays } from "./overlays";
import { PageView } from "./pages";
import { Rail } from "./rail";
import { SystemStrip } from "./system-strip";
import { TopBar } from "./top-bar";

const queries = new QueryClient({
  defaultOptions: { queries: { retry: 1, staleTime: 2_000, refetchOnWindowFocus: false } },
});

function Shell() {
  const [path, navigate] = useLocation();
  const place = pageOf(path);
  useEffect(() => listenKeys(navigate), [navigate]);
  return (
    <div className="flex h-dvh overflow-hidden">
      <a href="#main" className="sr-only z-50 bg-surface p-2 focus:not-sr-only focus:fixed">
        Skip to content
      </a>
      <Rail place={place} />
      <div className="flex min-w-0 flex-1 flex-col">
        <TopBar />
        <SystemStrip />
        <Banner />
        <main id="main" tabIndex={-1} className="min-h-0 flex-1 overflow-y-auto outline-none">
          <PageView place={place} />
        </main>
      </div>
      <Overlays />
    </div>
  );
}

export function App() {
  const demo = useView((view) => view.demo);
  useEffect(() => syncAddress(), []);
  useEffect(() => startFeed(demo), [demo]);
  return (
    <QueryClientProvider client={queries}>
      <Router hook={useBrowserLocation}>
        <Shell />
      </Router>
    </QueryClientProvider>
  );
}
