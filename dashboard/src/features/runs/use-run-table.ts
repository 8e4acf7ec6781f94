/** The server filters and sorts the runs; this asks for the table, and for runs in it that are not here yet. */
import { keepPreviousData } from "@tanstack/react-query";
import { useEffect } from "react";
import type { RunQuery } from "@/api/requests";
import { useResource } from "@/hooks/resource";
import { addRuns, runIndex, useCatalog } from "@/stores/catalog";

const ASK_MS = 3000;

export function useRunTable(order: RunQuery, column: readonly string[]) {
  const { runs, loaded, whole } = useCatalog();
  const query = { ...order, column };
  const table = useResource(
    ["runs/table", JSON.stringify(query)],
    (requests, signal) => requests.runTable(query, signal),
    { everyMs: ASK_MS, placeholder: keepPreviousData },
  );
  const { data, refetch } = table;
  const known = runIndex(runs).names;
  const isMissing = loaded && !whole && (data?.ids.some((id) => !known.has(id)) ?? false);
  const { data: found } = useResource(
    ["runs/found", JSON.stringify(order)],
    (requests, signal) => requests.findRuns(order, signal),
    { everyMs: ASK_MS, enabled: isMissing },
  );
  useEffect(() => {
    if (found && isMissing) addRuns(found);
  }, [found, isMissing]);
  const total = data?.total;
  useEffect(() => {
    if (whole && total !== undefined && total !== runs.length) void refetch();
  }, [whole, total, runs.length, refetch]);
  return table;
}
