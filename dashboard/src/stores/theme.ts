/** Light or dark: a preference of this browser, not a part of the view. */
import { create } from "zustand";

export type Theme = "light" | "dark";
const KEY = "strata.theme";

export const useTheme = create<{ theme: Theme; toggle(): void }>((set, get) => ({
  theme: document.documentElement.dataset["theme"] === "light" ? "light" : "dark",
  toggle: () => {
    const theme: Theme = get().theme === "light" ? "dark" : "light";
    document.documentElement.dataset["theme"] = theme;
    localStorage.setItem(KEY, theme);
    set({ theme });
  },
}));
