/** What people do to runs. The list is asked for again at once; other pages hear of it on the stream. */
import type { ChangeRun, ChangeRuns } from "@/api/wire";
import { describe } from "@/components/ui/confirm";
import { requests } from "@/data/source";
import { setRuns } from "@/stores/catalog";

export async function saveRun(id: string, change: ChangeRun): Promise<void> {
  await requests().editRun(id, change);
  setRuns(await requests().runs());
}

export async function saveRuns(change: ChangeRuns): Promise<void> {
  await requests().editRuns(change);
  setRuns(await requests().runs());
}

/** One after the other; returns what the server said of each that it kept. */
export async function deleteRuns(ids: readonly string[]): Promise<string[]> {
  const refused: string[] = [];
  for (const id of ids) {
    try {
      await requests().deleteRun(id);
    } catch (cause) {
      refused.push(describe(cause));
    }
  }
  setRuns(await requests().runs());
  return refused;
}

export async function deleteRun(id: string): Promise<void> {
  await requests().deleteRun(id);
  setRuns(await requests().runs());
}
