import { liveSource } from "@/api/live";
import { setRuns } from "@/stores/catalog";
import { setLink, useLink } from "@/stores/link";

export function startFeed(_demo: boolean): () => void {
  return liveSource.open({
    link: setLink,
    event: (event) => {
      useLink.setState({ lastEventAt: Date.now() });
      if (event.type === "snapshot" || event.type === "runs_meta") setRuns(event.data.runs);
    },
  });
}
