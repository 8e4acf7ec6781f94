/** The state of the one connection, and when anything last arrived. */
import { create } from "zustand";
import type { Link } from "@/api/source";

interface LinkStore extends Link {
  /** Unix ms of the last event of any kind; null before the first. */
  lastEventAt: number | null;
  /** Since when the link is not live; null while it is. */
  lostAt: number | null;
}

export const useLink = create<LinkStore>(() => ({
  state: "connecting",
  detail: "Opening the live stream.",
  retryAt: null,
  lastEventAt: null,
  lostAt: null,
}));

export function setLink(link: Link): void {
  useLink.setState((old) => ({ ...link, lostAt: link.state === "live" ? null : (old.lostAt ?? Date.now()) }));
}
