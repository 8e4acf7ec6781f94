/** The rail's entries, in order, with their `g` shortcut. */
import {
  Activity,
  Archive,
  Bell,
  ChartSpline,
  Database,
  LayoutDashboard,
  LayoutGrid,
  ListChecks,
  type LucideIcon,
  ScrollText,
  Server,
  Settings2,
} from "lucide-react";
import type { Page } from "@/lib/routes";

export interface Entry {
  page: Page;
  label: string;
  icon: LucideIcon;
  key: string;
}

export const ENTRIES: readonly Entry[] = [
  { page: "overview", label: "Overview", icon: LayoutDashboard, key: "o" },
  { page: "runs", label: "Runs", icon: Activity, key: "r" },
  { page: "metrics", label: "Metrics", icon: ChartSpline, key: "m" },
  { page: "dashboards", label: "Dashboards", icon: LayoutGrid, key: "b" },
  { page: "cluster", label: "Cluster", icon: Server, key: "c" },
  { page: "data", label: "Data", icon: Database, key: "d" },
  { page: "checkpoints", label: "Checkpoints", icon: Archive, key: "k" },
  { page: "tasks", label: "Tasks", icon: ListChecks, key: "t" },
  { page: "logs", label: "Logs", icon: ScrollText, key: "l" },
  { page: "alerts", label: "Alerts", icon: Bell, key: "a" },
  { page: "settings", label: "Settings", icon: Settings2, key: "s" },
];
