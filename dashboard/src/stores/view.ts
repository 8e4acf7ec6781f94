/** What the user looks at. Lives in the address bar, so a link restores it; history.replaceState, never a new entry. */
import { create } from "zustand";
import { pageOf } from "@/lib/routes";
import { DEFAULT_VIEW, decodeView, encodeView, type View } from "@/lib/view-codec";

interface ViewStore extends View {
  set(change: Partial<View>): void;
}

const WRITE_DELAY_MS = 150;

function readAddress(): View {
  return decodeView(location.search, pageOf(location.pathname).page, DEFAULT_VIEW);
}

export const useView = create<ViewStore>((set) => ({ ...readAddress(), set: (change) => set(change) }));

/** The address of a page with today's view; links keep run, range and source. */
export function addressOf(path: string): string {
  return path + encodeView(useView.getState(), pageOf(path).page);
}

/** Keeps address bar and store together. Returns the undo. */
export function syncAddress(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const write = () => {
    const wanted = addressOf(location.pathname);
    if (wanted !== location.pathname + location.search) history.replaceState(history.state, "", wanted);
  };
  const unsubscribe = useView.subscribe(() => {
    clearTimeout(timer);
    timer = setTimeout(write, WRITE_DELAY_MS);
  });
  const onPop = () => {
    const { page } = pageOf(location.pathname);
    useView.setState(decodeView(location.search, page, useView.getState()));
  };
  addEventListener("popstate", onPop);
  return () => {
    clearTimeout(timer);
    unsubscribe();
    removeEventListener("popstate", onPop);
  };
}
