/** Who this browser is to the server, and what it may do there. The server's table of rights decides. */
import { create } from "zustand";
import type { Answers, Caller } from "@/api/wire";

interface Rights {
  /** null until the server has said it. */
  who: string | null;
  may: ReadonlySet<string>;
}

export const NO_RIGHTS_KNOWN: Rights = { who: null, may: new Set() };

export const useRights = create<Rights>(() => NO_RIGHTS_KNOWN);

export function setRights({ who, may }: Caller): void {
  useRights.setState({ who, may: new Set(may.map((row) => row.replace(" /api/", " /"))) });
}

/** Whether the caller may send this request. What only some may is not offered before that is known. */
export function useMay(request: keyof Answers): boolean {
  return useRights((state) => state.may.has(request));
}
