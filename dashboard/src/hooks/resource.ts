import { type keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Requests } from "@/api/requests";
import { requests, sourceKind } from "@/data/source";

interface Options {
  /** Repeats the request; off when undefined. */
  everyMs?: number;
  enabled?: boolean;
  /** What to show while a new key is asked for. */
  placeholder?: typeof keepPreviousData;
}

/** A request to the source in use, cached under its key and the kind of source. */
export function useResource<T>(
  key: readonly (string | number | null)[],
  ask: (requests: Requests, signal: AbortSignal) => Promise<T>,
  { everyMs, enabled = true, placeholder }: Options = {},
) {
  const client = useQueryClient();
  const what = {
    queryKey: [sourceKind(), ...key],
    queryFn: ({ signal }: { signal: AbortSignal }) => ask(requests(), signal),
  };
  // Sent before the page is rendered, not after: the first rows of a table take longer than the way to the server.
  if (enabled && client.getQueryState(what.queryKey) === undefined) void client.prefetchQuery(what);
  return useQuery({
    ...what,
    enabled,
    ...(placeholder && { placeholderData: placeholder }),
    ...(everyMs !== undefined && { refetchInterval: everyMs }),
  });
}
