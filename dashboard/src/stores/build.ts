/** Whether the server has another build of this page than the one that is open: they may no longer understand each other. */
import { create } from "zustand";

interface Build {
  outdated: boolean;
}

export const useBuild = create<Build>(() => ({ outdated: false }));

/** The script that a page begins with: its name has the hash of all the others in it. */
export function entryOf(page: Document): string | null {
  return page.querySelector("script[type=module][src]")?.getAttribute("src") ?? null;
}

/** Asks whoever served this page for it once more, after a stream that broke: a server that was away may be another. */
export async function checkBuild(own = entryOf(document)): Promise<void> {
  try {
    const answer = await fetch("/", { cache: "no-cache" });
    const served = entryOf(new DOMParser().parseFromString(await answer.text(), "text/html"));
    if (answer.ok && served !== null && served !== own) useBuild.setState({ outdated: true });
  } catch {
    // It is away again, as the pill says: the next snapshot asks.
  }
}
