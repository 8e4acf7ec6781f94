/** Freezes what the charts draw; points still arrive and are counted, so resuming leaves no gap. */
import { create } from "zustand";

export const usePause = create<{ paused: boolean; at: number }>(() => ({ paused: false, at: 0 }));
