/** Preferences of this browser: pins and the user's own rules for metric tabs. */
import { create } from "zustand";
import type { TabRule } from "@/lib/metric-tabs";

interface Prefs {
  pins: string[];
  rules: TabRule[];
}

const KEY = "strata.prefs";

function read(): Prefs {
  try {
    const saved = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Prefs>;
    return { pins: saved.pins ?? [], rules: saved.rules ?? [] };
  } catch {
    return { pins: [], rules: [] };
  }
}

export const usePrefs = create<Prefs>(read);

usePrefs.subscribe((prefs) => localStorage.setItem(KEY, JSON.stringify(prefs)));

export function togglePin(metric: string): void {
  const { pins } = usePrefs.getState();
  usePrefs.setState({ pins: pins.includes(metric) ? pins.filter((other) => other !== metric) : [...pins, metric] });
}
