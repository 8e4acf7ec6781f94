/** Panels that any page may open: search, keyboard help, the incident trail, a fork, toasts. */
import { create } from "zustand";
import type { Alert } from "@/api/wire";

/** A place in a run to explain: a spike that was clicked, an alert, a column of the heatmap. */
export interface Incident {
  run_id: string | null;
  step: number | null;
  time: number | null;
  metric: string | null;
  title: string;
  worker_id: string | null;
}

/** Where a fork begins: a checkpoint, or the newest good one at or before a step. */
export interface ForkPlace {
  task_id: string;
  step: number | null;
  checkpoint_id: string | null;
}

export interface Toast {
  id: number;
  tone: "info" | "ok" | "bad";
  text: string;
}

/** Alerts that just came, as one line: a storm of them must not lie over the page. */
export interface Notice {
  text: string;
  tone: "info" | "bad";
  count: number;
}

interface Overlay {
  search: boolean;
  help: boolean;
  menu: boolean;
  incident: Incident | null;
  fork: ForkPlace | null;
  toasts: Toast[];
  notice: Notice | null;
}

export const useOverlay = create<Overlay>(() => ({
  search: false,
  help: false,
  menu: false,
  incident: null,
  fork: null,
  toasts: [],
  notice: null,
}));

const TOAST_MS = 6000;
const NOTICE_MS = 8000;
let nextToast = 1;
let noticeTimer: ReturnType<typeof setTimeout> | undefined;

export function openIncident(incident: Incident): void {
  useOverlay.setState({ incident });
}

export function openAlert(alert: Alert): void {
  openIncident({
    run_id: alert.run_id,
    step: alert.step,
    time: alert.timestamp_ms,
    metric: null,
    title: alert.message,
    worker_id: alert.worker_id,
  });
}

export function openFork(fork: ForkPlace): void {
  useOverlay.setState({ fork });
}

export function toast(text: string, tone: Toast["tone"] = "info"): void {
  const id = nextToast++;
  useOverlay.setState((old) => ({ toasts: [...old.toasts.slice(-3), { id, tone, text }] }));
  setTimeout(() => useOverlay.setState((old) => ({ toasts: old.toasts.filter((item) => item.id !== id) })), TOAST_MS);
}

/** The newest alert is named, the others are counted. */
export function announce(text: string, tone: Notice["tone"]): void {
  useOverlay.setState((old) => ({
    notice: { text, tone: old.notice?.tone === "bad" ? "bad" : tone, count: (old.notice?.count ?? 0) + 1 },
  }));
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(dropNotice, NOTICE_MS);
}

export function dropNotice(): void {
  useOverlay.setState({ notice: null });
}
