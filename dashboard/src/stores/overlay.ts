/** Panels that any page may open: search, keyboard help, the incident trail, toasts. */
import { create } from "zustand";

/** A place in a run to explain: a spike that was clicked, an alert, a column of the heatmap. */
export interface Incident {
  run_id: string | null;
  step: number | null;
  time: number | null;
  metric: string | null;
  title: string;
  worker_id: string | null;
}

export interface Toast {
  id: number;
  tone: "info" | "ok" | "bad";
  text: string;
}

interface Overlay {
  search: boolean;
  help: boolean;
  menu: boolean;
  incident: Incident | null;
  toasts: Toast[];
}

export const useOverlay = create<Overlay>(() => ({
  search: false,
  help: false,
  menu: false,
  incident: null,
  toasts: [],
}));

const TOAST_MS = 6000;
let nextToast = 1;

export function openIncident(incident: Incident): void {
  useOverlay.setState({ incident });
}

export function toast(text: string, tone: Toast["tone"] = "info"): void {
  const id = nextToast++;
  useOverlay.setState((old) => ({ toasts: [...old.toasts.slice(-3), { id, tone, text }] }));
  setTimeout(() => useOverlay.setState((old) => ({ toasts: old.toasts.filter((item) => item.id !== id) })), TOAST_MS);
}
