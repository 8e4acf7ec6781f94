import { useMemo, useState } from "react";
import type { RunMedia } from "@/api/wire";
import { Code, Empty, Skeleton } from "@/components/ui/empty";
import { Input } from "@/components/ui/input";
import { useResource } from "@/hooks/resource";
import { formatCount } from "@/lib/format";
import { kindOrder } from "@/lib/media";
import { isRunning } from "@/lib/runs";
import { useCatalog } from "@/stores/catalog";
import { LOOK_MS, MediaCard } from "./media-card";

const SHOWN = 24;

interface Named {
  metric: string;
  kind: string;
  ranks: number[];
  runs: string[];
}

/** Everything that runs logged beside numbers, a card per name. `quiet`: nothing at all where there is none. */
export function MediaGrid({ runs, quiet = false }: { runs: readonly string[]; quiet?: boolean }) {
  const [search, setSearch] = useState("");
  const live = useCatalog((state) => state.runs.some((run) => runs.includes(run.run_id) && isRunning(run)));
  const { data, error } = useResource(
    ["media", search, ...runs],
    (ask, signal) => Promise.all(runs.map((run) => ask.media(run, search, signal))),
    live ? { everyMs: LOOK_MS } : {},
  );
  const names = useMemo(() => named(data ?? []), [data]);
  if (error && !data)
    return quiet ? null : (
      <Empty title="Media cannot be read" tone="bad">
        {error.message}
      </Empty>
    );
  if (!data) return quiet && search === "" ? null : <Skeleton rows={6} />;
  if (names.length === 0 && search === "") return quiet ? null : <NoMedia />;
  const more = data.some((one) => one.more) || names.length > SHOWN;
  return (
    <section aria-label="Media" className="flex flex-col gap-3">
      {(more || search !== "" || names.length > 6) && (
        <Input
          type="search"
          aria-label="Find media by name"
          placeholder="Find media by name"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
          className="w-72 max-w-full"
        />
      )}
      {names.length === 0 && <Empty title="No name matches">Nothing that was logged is called “{search}”.</Empty>}
      <div className="grid grid-cols-[repeat(auto-fill,minmax(min(100%,420px),1fr))] gap-3">
        {names.slice(0, SHOWN).map((one) => (
          <MediaCard key={`${one.kind} ${one.metric} ${one.runs.join(" ")}`} {...one} live={live} />
        ))}
      </div>
      {more && (
        <p className="text-xs text-muted">
          The first {formatCount(Math.min(SHOWN, names.length))} names are shown: search for others.
        </p>
      )}
    </section>
  );
}

/** One card per name and kind, with the runs that have it. */
function named(answers: readonly RunMedia[]): Named[] {
  const found = new Map<string, Named>();
  for (const { run_id, keys } of answers) {
    for (const { metric, kind, ranks } of keys) {
      const one = found.get(`${kind} ${metric}`) ?? { metric, kind, ranks: [], runs: [] };
      one.runs.push(run_id);
      one.ranks = [...new Set([...one.ranks, ...ranks])].sort((a, b) => a - b);
      found.set(`${kind} ${metric}`, one);
    }
  }
  return [...found.values()].sort(
    (a, b) => kindOrder(a.kind) - kindOrder(b.kind) || (a.metric < b.metric ? -1 : a.metric > b.metric ? 1 : 0),
  );
}

function NoMedia() {
  return (
    <Empty title="No media yet">
      Pictures, histograms, tables and texts are logged like numbers:
      <Code>{'run.log({"samples": strata.Image(pixels),\n         "weights": strata.Histogram(values)})'}</Code>
    </Empty>
  );
}
