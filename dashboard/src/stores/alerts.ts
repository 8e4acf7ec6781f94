/** Detector events, newest first, and how many of them this browser has not looked at. */
import { create } from "zustand";
import type { Alert } from "@/api/wire";

interface AlertStore {
  alerts: Alert[];
  loaded: boolean;
  unread: number;
}

const LIMIT = 1000;
const SEEN_KEY = "strata.alerts.seen";

export const useAlerts = create<AlertStore>(() => ({ alerts: [], loaded: false, unread: 0 }));

function seenUntil(): number {
  return Number(localStorage.getItem(SEEN_KEY) ?? 0);
}

/** Merges by id; the same alert may come by request and by stream. Returns those that are new. */
export function addAlerts(incoming: readonly Alert[]): Alert[] {
  const { alerts } = useAlerts.getState();
  const known = new Set(alerts.map((alert) => alert.id));
  const fresh = incoming.filter((alert) => !known.has(alert.id));
  const merged = [...fresh, ...alerts].sort((a, b) => b.timestamp_ms - a.timestamp_ms).slice(0, LIMIT);
  const seen = seenUntil();
  const unread = merged.filter((alert) => alert.timestamp_ms > seen && alert.severity !== "info").length;
  useAlerts.setState({ alerts: merged, loaded: true, unread });
  return fresh;
}

export function markSeen(): void {
  const newest = useAlerts.getState().alerts[0];
  if (newest) localStorage.setItem(SEEN_KEY, String(newest.timestamp_ms));
  useAlerts.setState({ unread: 0 });
}
