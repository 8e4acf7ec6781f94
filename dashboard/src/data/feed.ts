/** Carries events of the chosen source into the stores. The only writer of live data; one feed runs at a time. */
import { liveSource } from "@/api/live";
import type { DataSource, Link } from "@/api/source";
import type { ClusterState, RunsMeta, Snapshot, StreamEvent } from "@/api/wire";
import { after } from "@/lib/after";
import { oldestFirst } from "@/lib/logs";
import { addAlerts, useAlerts } from "@/stores/alerts";
import { checkBuild } from "@/stores/build";
import { mergeRuns, NO_RUNS_KNOWN, setRuns, useCatalog } from "@/stores/catalog";
import { applyState, EMPTY_CLUSTER, useCluster } from "@/stores/cluster";
import { setLink, useLink } from "@/stores/link";
import { announce } from "@/stores/overlay";
import { NO_RIGHTS_KNOWN, setRights, useRights } from "@/stores/rights";
import { pointLoader } from "./loader";
import { logRing } from "./log-ring";
import { opening } from "./opening";
import { outlineLoader } from "./outline-loader";
import { seriesStore } from "./series-store";
import { setSource } from "./source";
import { systemHistory } from "./system-history";

/** Tables need no more than this; charts bypass React altogether. */
const STATE_EVERY_MS = 500;
const FRESH_ALERT_MS = 60_000;
/** The snapshot asks for the rest; when it is slow to come, the rest need not wait for it. */
const SNAPSHOT_LATE_MS = 500;
const RETRY_MS = 2000;

export class Feed {
  #pending: ClusterState = {};
  #written = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sampler: ReturnType<typeof setInterval> | undefined;
  #late: ReturnType<typeof setTimeout> | undefined;
  #stopSource: (() => void) | undefined;
  #told = false;
  /** Counts snapshots. */
  #round = 0;
  /** What was told of runs since all of them were asked for: it is newer than the answer. */
  #news: RunsMeta[] | null = null;
  #stopped = false;

  constructor(readonly source: DataSource) {}

  start(): void {
    setSource(this.source);
    this.#sampler = setInterval(this.#sample, 1000);
    this.#expectSnapshot();
    this.#stopSource = this.source.open({ link: (link) => this.#linked(link), event: (event) => this.#receive(event) });
  }

  stop(): void {
    this.#stopped = true;
    this.#stopSource?.();
    clearInterval(this.#sampler);
    clearTimeout(this.#timer);
    clearTimeout(this.#late);
  }

  /** While the stream cannot be had, each of its tries also asks once by request: slower, but not blind. */
  #linked(link: Link): void {
    setLink(link);
    if (link.state === "live" && !this.#told) this.#expectSnapshot();
    if (link.state === "connecting" && link.retryAt !== null) void this.#refresh(true);
  }

  #expectSnapshot(): void {
    clearTimeout(this.#late);
    this.#late = setTimeout(() => void this.#refresh(false), SNAPSHOT_LATE_MS);
  }

  #receive(event: StreamEvent): void {
    if (this.#stopped) return;
    useLink.setState({ lastEventAt: Date.now() });
    switch (event.type) {
      case "snapshot":
        this.#takeRuns(event.data);
        useCatalog.setState({ reduced: event.data.reduced, outlined: outlinedBy(event.data) });
        pointLoader.clear();
        outlineLoader.clear();
        seriesStore.reset(event.data);
        clearTimeout(this.#late);
        if (this.#told && this.source.kind === "live") void checkBuild();
        this.#told = true;
        void this.#rest(event.data.more_runs);
        break;
      case "delta":
        seriesStore.apply(event.data, event.seq);
        break;
      case "runs_meta":
        this.#news?.push(event.data);
        if (event.data.partial) mergeRuns(event.data.runs, event.data.deleted);
        else setRuns(event.data.runs);
        if (event.data.deleted.length > 0) seriesStore.drop(event.data.deleted);
        break;
      case "state":
        this.#queue(event.data);
        break;
      case "log":
        logRing.push(event.data.logs);
        logRing.skip(event.data.skipped);
        break;
      case "alert":
        this.#announce(event.data.alerts);
        break;
      case "resync":
        break;
    }
  }

  /** The newest runs come with the snapshot; the others are not worth that anybody waits for them. */
  #takeRuns({ runs, more_runs: more }: Snapshot): void {
    if (more && useCatalog.getState().loaded) mergeRuns(runs, []);
    else setRuns(runs);
    useCatalog.setState({ whole: !more });
  }

  /** First the page's own requests, then what is around every page, then megabytes. Another snapshot begins anew. */
  async #rest(more: boolean): Promise<void> {
    this.#round += 1;
    const round = this.#round;
    this.#news = null; // who collected it for the snapshot before is over, and nobody else would empty it
    await Promise.race([opening.rested(), after(SNAPSHOT_LATE_MS)]);
    if (this.#isOver(round)) return;
    void this.#refresh(false);
    if (!more) return;
    await opening.rested();
    await this.#askRuns(round);
  }

  async #askRuns(round: number): Promise<void> {
    while (!this.#isOver(round)) {
      const news: RunsMeta[] = [];
      this.#news = news;
      try {
        const runs = await this.source.requests.runs();
        if (this.#isOver(round)) return;
        setRuns(runs);
        for (const { runs: changed, deleted } of news) mergeRuns(changed, deleted);
        useCatalog.setState({ whole: true });
        this.#news = null;
        return;
      } catch {
        await after(RETRY_MS); // the server is away, as the pill says
      }
    }
  }

  #isOver(round: number): boolean {
    return this.#stopped || this.#round !== round;
  }

  #announce(alerts: Parameters<typeof addAlerts>[0]): void {
    for (const alert of addAlerts(alerts)) {
      const fresh = Date.now() - alert.timestamp_ms < FRESH_ALERT_MS;
      if (fresh && alert.severity !== "info") announce(alert.message, alert.severity === "critical" ? "bad" : "info");
    }
  }

  #queue(state: ClusterState): void {
    Object.assign(this.#pending, state);
    for (const key of Object.keys(state)) this.#written.add(key);
    this.#timer ??= setTimeout(() => this.#flush(), STATE_EVERY_MS);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    applyState(this.#pending);
    this.#pending = {};
  }

  /** Everything that the stream does not repeat on connect, and the runs while there is no stream: ten thousand are
   * megabytes. Failures show on the pill, not here. */
  async #refresh(withRuns: boolean): Promise<void> {
    this.#written = new Set();
    const { requests } = this.source;
    const [board, fleet, caller, logs, alerts, runs] = await Promise.allSettled([
      requests.dashboard(),
      requests.fleet(),
      requests.caller(),
      requests.logs({ limit: 1000 }),
      requests.alerts(),
      withRuns ? requests.runs() : null,
    ]);
    if (this.#stopped) return;
    this.#flush(); // what is newer than the answers stands in their place, so it must be there with them
    if (caller.status === "fulfilled") setRights(caller.value);
    if (fleet.status === "fulfilled") applyState({ fleet: fleet.value }, this.#written);
    if (board.status === "fulfilled") applyState(board.value, this.#written);
    else await this.#askStatus();
    if (logs.status === "fulfilled") logRing.merge(oldestFirst(logs.value));
    if (alerts.status === "fulfilled") addAlerts(alerts.value);
    if (runs.status === "fulfilled" && runs.value && !useCatalog.getState().loaded) {
      setRuns(runs.value);
      useCatalog.setState({ whole: true });
    }
  }

  /** A server that has no more than a status still says who it is. */
  async #askStatus(): Promise<void> {
    const [status] = await Promise.allSettled([this.source.requests.status()]);
    if (!this.#stopped && status?.status === "fulfilled") applyState({ coordinator: status.value });
  }

  readonly #sample = (): void => {
    const live = useLink.getState().state === "live";
    systemHistory.sample(Date.now(), live ? useCluster.getState().metrics : null);
  };
}

function outlinedBy({ runs, omitted_runs: omitted, more_runs: more }: Snapshot): ReadonlySet<string> | null {
  if (omitted.length === 0 && !more) return null;
  const left = new Set(omitted);
  return new Set(runs.map((run) => run.run_id).filter((id) => !left.has(id)));
}

function forget(): void {
  useCluster.setState(EMPTY_CLUSTER, true);
  useCatalog.setState(NO_RUNS_KNOWN);
  useRights.setState(NO_RIGHTS_KNOWN);
  useAlerts.setState({ alerts: [], loaded: false, unread: 0 });
  useLink.setState({ state: "connecting", detail: "Opening the live stream.", lastEventAt: null, lostAt: null });
  pointLoader.clear();
  outlineLoader.clear();
  seriesStore.reset({ series: [], outline: null });
  logRing.clear();
  systemHistory.clear();
}

/** Starts the live or the demo feed with empty stores; the returned function stops it. */
export function startFeed(demo: boolean): () => void {
  forget();
  let feed: Feed | null = null;
  let stopped = false;
  const begin = (source: DataSource) => {
    if (stopped) return;
    feed = new Feed(source);
    feed.start();
  };
  // The player is a chunk of its own: people with a cluster never load it.
  if (demo) void import("@/api/demo").then(({ openDemo }) => openDemo()).then(begin);
  else begin(liveSource);
  return () => {
    stopped = true;
    feed?.stop();
  };
}
