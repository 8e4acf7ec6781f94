/** What people do to runs. The list is asked for again at once; other pages hear of it on the stream. */
import { requests } from "@/data/source";
import { setRuns } from "@/stores/catalog";

export async function saveRun(id: string, change: { name?: string; notes?: string }): Promise<void> {
  await requests().editRun(id, change);
  setRuns(await requests().runs());
}

export async function deleteRun(id: string): Promise<void> {
  await requests().deleteRun(id);
  setRuns(await requests().runs());
}
