/** Opens the dashboard of an address: a saved one, or the one that is made from what the runs on show have logged. */
import { useEffect, useMemo } from "react";
import { ApiError } from "@/api/client";
import { useMetricNames } from "@/hooks/metric-names";
import { useResource } from "@/hooks/resource";
import { useRunValues } from "@/hooks/run-values";
import { useLeadRun, useShownRuns } from "@/hooks/runs";
import { useView } from "@/stores/view";
import { type Board, currentOf, openDefault, openSaved, show, useBoards } from "./boards";
import { defaultLayout } from "./default-layout";
import type { Layout } from "./layout";

export interface Opened {
  board: Board | undefined;
  /** Why a saved one cannot be shown. */
  error: Error | null;
}

export function useBoard(id: string | null): Opened {
  const board = useBoards(currentOf);
  const { data, error } = useResource(
    ["dashboard", id],
    (requests, signal) => requests.savedDashboard(id ?? "", signal),
    {
      enabled: id !== null,
    },
  );
  useEffect(() => show(id ?? ""), [id]);
  useEffect(() => {
    if (data && data.id === id) openSaved(data);
  }, [data, id]);
  useDefault(id === null);
  // Once per opening: from then on what the user chooses counts.
  const key = board?.id === id ? `${id} ${board?.version}` : "";
  // biome-ignore lint/correctness/useExhaustiveDependencies: the layout is read when another version is opened.
  useEffect(() => {
    if (key && board) lookAt(board.saved);
  }, [key]);
  return { board: board?.id === id ? board : undefined, error };
}

/** What a link says of runs, group and baseline goes before what was saved. */
function lookAt({ runs, group_by, baseline }: Layout): void {
  const asked = new URLSearchParams(location.search);
  useView.getState().set({
    ...(runs !== null && !asked.has("runs") && { runs }),
    ...(group_by && !asked.has("group") && { groupBy: group_by }),
    ...(baseline && !asked.has("base") && { baseline }),
  });
}

function useDefault(wanted: boolean): void {
  const shown = useShownRuns();
  const metrics = useMetricNames(shown);
  const { names, loaded, error } = useRunValues([], []);
  const project = useLeadRun()?.project ?? "";
  const layout = useMemo(() => defaultLayout(metrics, names), [metrics, names]);
  const known = loaded || error !== null;
  useEffect(() => {
    if (wanted && known) openDefault(layout, project);
  }, [wanted, known, layout, project]);
}

export function isGone(error: Error | null): boolean {
  return error instanceof ApiError && error.status === 404;
}
