/** Generated from the observatory's answers by `make wire`: never edited by hand. */

/** An alert, and the place it is about as far as it is known. */
export interface Alert {
  id: string;
  timestamp: number;
  timestamp_ms: number;
  kind: string;
  severity: "info" | "warning" | "critical";
  message: string;
  run_id: string | null;
  task_id: string | null;
  worker_id: string | null;
  rank: number | null;
  step: number | null;
}

/** New alerts. */
export interface AlertNews {
  alerts: Alert[];
}

/** All of them, in the order in which they were made. */
export interface AlertRules {
  rules: RuleInfo[];
  targets: TargetInfo[];
}

/** An array; of a long one the lowest and highest value of each stretch. */
export interface ArrayCell {
  kind: "array";
  dtype: string;
  shape: number[];
  values: unknown[];
}

/** A later attempt, or the same one after a rank was replaced in place. `step` is the first that it does again, null when nobody knows. */
export interface AttemptBegan {
  attempt: number;
  step: number | null;
  at_ms: number;
}

/** One try, with `size` ranks. `status` is how it ended, or the task's while it lasts, and `ended_by` what ended it early; `working_at_ms` is its first point's time; `lost_steps` are done again by the next one. */
export interface AttemptRow {
  attempt: number;
  size: number | null;
  status: TaskStatus;
  ended_by: FaultKind | null;
  reason: string | null;
  started_at_ms: number;
  working_at_ms: number | null;
  ended_at_ms: number | null;
  resume_step: number | null;
  top_step: number | null;
  lost_steps: number | null;
  lost_s: number | null;
}

/** A bar per run, or per group of runs: a column of the run table. */
export interface BarPanel {
  id: string;
  title?: string;
  w?: number;
  h?: number;
  kind: "bar";
  column?: string;
}

/** A barrier that waits, or how it ended; `missing` are worker ids. */
export interface Barrier {
  id: string;
  name: string;
  arrived: number;
  total: number;
  status: "waiting" | "complete" | "broken";
  created_at: number | null;
  created_at_ms: number | null;
  missing: string[];
  reason: string | null;
  step: number;
  task_id: string | null;
  wait_ms: number | null;
}

/** How much of a task's restarts is used: failures of its own, and losses (kills from outside, lost hosts). */
export interface Budget {
  failures: number;
  max_failures: number;
  failures_in_a_row: number;
  max_failures_in_a_row: number;
  losses: number;
  max_losses: number;
  losses_in_all: number;
  window_s: number;
}

/** The first bytes of many. */
export interface BytesCell {
  kind: "bytes";
  hex: string;
  size: number;
}

/** `may` are the requests that this caller may send and a viewer may not, as METHOD and route: a page shows their buttons to nobody else. */
export interface Caller {
  who: string;
  may: string[];
}

/** What people may write about a run; what is left out stays as it is. */
export interface ChangeRun {
  name?: string | null;
  notes?: string | null;
  group?: string | null;
  tags?: string[] | null;
  archived?: boolean | null;
}

/** The same change for many runs: tags come and go one by one, what is left out stays as it is. */
export interface ChangeRuns {
  run_ids: string[];
  add_tags?: string[];
  remove_tags?: string[];
  group?: string | null;
  archived?: boolean | null;
}

/** A checkpoint; `throughput` is in MB/s, `verified` null until somebody has read every byte (`reason`: damage), `pinned` null while its store cannot be read. */
export interface Checkpoint {
  id: string;
  step: number;
  epoch: number;
  size: number;
  path: string;
  created_at: number | null;
  created_at_ms: number | null;
  worker_id: string | null;
  status: CheckpointStatus;
  task_id: string | null;
  duration_s: number | null;
  throughput: number | null;
  verified: boolean | null;
  verified_at: number | null;
  verified_at_ms: number | null;
  pinned: boolean | null;
  reason: string | null;
}

/** A point of a `checkpoint*` metric as its writer left it. */
export interface CheckpointRow {
  metric: string;
  host: string;
  rank: number;
  device: number;
  step: number;
  value: number | null;
  unit: string;
  event_time: number;
  event_time_ms: number;
  tags: Record<string, unknown>;
}

/** Where a checkpoint stands. Only COMPLETED ones can be loaded; FAILED and REMOVED ones say why in `reason`. */
export type CheckpointStatus = "in_progress" | "completed" | "failed" | "removed";

/** Collections that changed, each whole; what is left out is as it was. While the fleet is `folded` there are no `workers`, and tasks have no `worker_ids`. */
export interface ClusterState {
  workers?: Worker[];
  fleet?: Fleet;
  tasks?: Task[];
  datasets?: Dataset[];
  checkpoints?: Checkpoint[];
  barriers?: Barrier[];
  metrics?: SystemMetrics;
  coordinator?: Status;
}

/** A new task. `entrypoint` is the command of its ranks; without one the task's `type` says what they run. With `min_workers` it is elastic: it runs with as many ranks as there are slots for, up to `worker_count`, and takes more when they were free for `grow_after_s`. A rank that makes no step for `hang_timeout_s` is ended (0: none is; null: the limit is learned from its steps). With `exclude_stragglers` a host whose ranks hold up the others is left. Each rank alone holds `gpus_per_worker` cards of its host. */
export interface CreateTask {
  name: string;
  type?: string;
  dataset_id?: string | null;
  worker_count?: number;
  config?: Record<string, unknown>;
  entrypoint?: string[];
  env?: Record<string, string>;
  launcher?: string;
  max_restarts?: number;
  working_dir?: string;
  min_workers?: number;
  grow_after_s?: number;
  spares?: number;
  hang_timeout_s?: number | null;
  exclude_stragglers?: boolean;
  gpus_per_worker?: number;
}

/** Every collection but the fleet, and the newest log lines. */
export interface Dashboard {
  coordinator: Status;
  workers: Worker[];
  datasets: Dataset[];
  checkpoints: Checkpoint[];
  barriers: Barrier[];
  metrics: SystemMetrics;
  tasks: Task[];
  logs: LogEntry[];
}

/** A dashboard is gone. */
export interface DashboardDeleted {
  success: boolean;
}

/** A saved dashboard in a list. `version` rises with every save; `author` is who saved it last. */
export interface DashboardHead {
  id: string;
  project: string;
  name: string;
  version: number;
  author: string;
  updated_at_ms: number;
  num_panels: number;
}

/** A registered dataset; `epoch` and `progress` (percent) are of those who read it now. */
export interface Dataset {
  id: string;
  name: string;
  total_samples: number;
  shard_size: number;
  shard_count: number;
  format: string;
  shuffle: boolean;
  seed: number;
  path: string;
  registered_at: number | null;
  registered_at_ms: number | null;
  epoch: number | null;
  progress: number | null;
  queues: DatasetQueue[];
  metadata: Record<string, string>;
}

/** A dataset that one task reads in queue mode; `workers` counts open leases by worker. */
export interface DatasetQueue {
  task_id: string | null;
  epoch: number;
  num_samples: number;
  num_shards: number;
  committed_samples: number;
  leased_samples: number;
  remaining_samples: number;
  leased_shards: number;
  read_shards: number;
  workers: Record<string, number>;
  finished: boolean;
}

/** A registration, with the counts that were read from the files. */
export interface DatasetRegistered {
  success: boolean;
  id: string;
  dataset_id: string;
  total_shards: number;
  total_samples: number;
  shard_size: number;
}

/** What became of one alert at one target, and when. `problem` says why it was not sent, or not yet. */
export interface Delivery {
  target: string;
  state: "waiting" | "sent" | "failed" | "quieted" | "dropped";
  at_ms: number | null;
  problem: string | null;
}

/** New points: the number of a series, then columns of steps, times and values. */
export interface Delta {
  new_series: NewSeries[];
  points: ([number, number[], number[], (number | null)[]])[];
}

/** A host goes away in `deadline_s` seconds; without one, when all that runs there has left. */
export interface Drain {
  deadline_s?: number | null;
  reason?: string;
}

/** What was wrong. */
export interface ErrorAnswer {
  error: ErrorBody;
}

/** `code` is stable and made for programs, `hint` says what to do; `field` is the part of the request that is wrong, where it is one. */
export interface ErrorBody {
  code: string;
  message: string;
  hint: string;
  field: string | null;
}

/** One thing that was seen. `source` is who saw it: agent, coordinator, metric or checkpoint. */
export interface Evidence {
  source: string;
  text: string;
  rank: number | null;
  at_ms: number | null;
}

/** What was seen. The last five are no end of a rank. */
export type FaultKind = "exception" | "exit" | "crash" | "killed" | "out_of_memory" | "hang" | "suspended" | "unstarted" | "hindered" | "host_lost" | "told" | "followed" | "unseen" | "drained" | "asked" | "straggler" | "grown";

/** `folded`: there are so many workers that the stream names none of them; GET /api/fleet/workers does. */
export interface Fleet {
  total: number;
  folded: boolean;
  groups: FleetGroup[];
}

/** The workers of one task in order of rank; `task_id` is null for those of no task. `states` has one letter for each: the first of its status, or s when it is suspect. `ranks` is null where they are 0, 1, 2 and so on. `host_sizes` says how many neighbours share a host, host by host. */
export interface FleetGroup {
  task_id: string | null;
  counts: Record<string, number>;
  suspect: number;
  states: string;
  ranks: number[] | null;
  host_sizes: number[];
  step: Spread | null;
  step_time_s: Spread | null;
  slowest: SlowRank[];
}

/** Some of the workers that were asked for, from place `offset` of `total`. */
export interface FleetPage {
  total: number;
  offset: number;
  workers: Worker[];
}

/** Where a task began: with a checkpoint of another one. Of `skip`, steps of that one, first and last, it leaves out the batches; `changes` are the config values that it was given anew. */
export interface Fork {
  task_id: string;
  step: number;
  checkpoint_id: string;
  skip: [number, number][];
  changes: Record<string, unknown>;
  by: string;
}

/** `checkpoint_id`, or the newest good checkpoint at or before `step`, or the newest that holds none of `skip`: steps of the task, first and last, whose global batches are left out. `changes` are config values; `arguments` are added to its command. */
export interface ForkTask {
  step?: number | null;
  checkpoint_id?: string;
  changes?: Record<string, unknown>;
  skip?: [number, number][];
  name?: string;
  arguments?: string[];
}

/** What one GPU does; null is what its driver does not tell. */
export interface GpuMetrics {
  gpu_id: number;
  utilization_percent: number | null;
  memory_used_bytes: number | null;
  memory_total_bytes: number | null;
  temperature_celsius: number | null;
}

/** The server answers. */
export interface Health {
  status: string;
}

/** `steps` are those of the whole picture, `columns` the ones that changed since `version`, or all. Row i stands for the ranks from `first_ranks[i]` to `last_ranks[i]`. `picture` changes when it begins anew. */
export interface Heat {
  run_id: string;
  metric: string | null;
  metrics: HeatMetric[];
  picture: string;
  version: number;
  num_ranks: number;
  first_ranks: number[];
  last_ranks: number[];
  steps: number[];
  columns: HeatColumn[];
}

/** One step. `ratios` has for each row the ratio to the median of all ranks, in hundredths: of the row's rank that is farthest from it. `top_rank` has the highest value of all; null is where nobody logged a number. */
export interface HeatColumn {
  step: number;
  median: number | null;
  top_rank: number | null;
  top_ratio: number | null;
  ratios: (number | null)[];
}

/** A metric that several ranks have logged, and how many. */
export interface HeatMetric {
  metric: string;
  num_ranks: number;
}

/** Histograms that runs logged under a key, over their steps. */
export interface HistogramPanel {
  id: string;
  title?: string;
  w?: number;
  h?: number;
  kind: "histogram";
  key?: string;
}

/** One host's agent. `draining` says why it goes away, null: it stays; `deadline` (Unix seconds) when, if that is known, and `noticed` that it said so itself. `tasks` have ranks there now. */
export interface Host {
  id: string;
  hostname: string;
  state: string;
  reason: string | null;
  launcher: string;
  slots: number;
  gpu_count: number;
  draining: string | null;
  deadline: number | null;
  noticed: boolean;
  tasks: string[];
}

/** A picture as a data URL; one that is broken or too large has an error in its place. */
export interface ImageCell {
  kind: "image";
  size: number;
  thumbnail?: string;
  error?: string;
  format?: string;
  width?: number;
  height?: number;
}

/** Images that runs logged under a key, side by side. */
export interface ImagePanel {
  id: string;
  title?: string;
  w?: number;
  h?: number;
  kind: "image";
  key?: string;
}

/** What a dashboard shows. No `runs`: those that the page has chosen. `group_by` is a column of the run table by which runs are drawn as one line, `baseline` a run that every chart shows; empty is none. */
export interface Layout {
  sections?: Section[];
  runs?: string[] | null;
  group_by?: string;
  baseline?: string;
}

/** Metrics and formulas of the runs on show over steps, time or another metric (`x_metric`, where x is `metric`). */
export interface LinePanel {
  id: string;
  title?: string;
  w?: number;
  h?: number;
  kind: "line";
  metrics?: string[];
  formulas?: string[];
  x?: "step" | "rel" | "wall" | "metric";
  x_metric?: string;
  log_x?: boolean;
  log_y?: boolean;
  clip?: boolean;
  smoothing?: number;
  smoothing_kind?: "ema" | "mean" | "gauss";
}

/** A list; of a long one the lowest and highest value of each stretch, or the first few. */
export interface ListCell {
  kind: "list";
  size: number;
  values: unknown[];
}

/** `id` grows with time, so it is also the cursor for the next page. */
export interface LogEntry {
  id: string;
  timestamp: number;
  timestamp_ms: number;
  level: LogLevel;
  message: string;
  source: string;
  task_id: string | null;
  worker_id: string | null;
  rank: number | null;
  host: string;
  stream: string;
  attempt: number;
}

/** The four levels of a log line. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** New log lines. `skipped` came with them too fast for a page, and are found by a search only. */
export interface LogNews {
  logs: LogEntry[];
  skipped: number;
}

/** Words of the dashboard's author. */
export interface MarkdownPanel {
  id: string;
  title?: string;
  w?: number;
  h?: number;
  kind: "markdown";
  text?: string;
}

/** Entries in the order of their steps, evenly chosen where there are more than were asked for. `num_steps` are all of them. */
export interface MediaEntries {
  run_id: string;
  metric: string;
  kind: string;
  rank: number;
  num_steps: number;
  entries: MediaEntry[];
}

/** What was logged at one step; of a step that was done again, the newest. `text` is what its kind says: the words of a text, the JSON of a histogram, the JSON of `{"items": [{"file", ...}]}`, whose files are below /api/runs/{run_id}/files. */
export interface MediaEntry {
  step: number;
  event_time_ms: number;
  attempt: number;
  text: string;
}

/** One name under which a run logs media of one kind; `ranks` are those that do, 64 at most. */
export interface MediaKey {
  metric: string;
  kind: string;
  ranks: number[];
  num_steps: number;
  first_step: number;
  last_step: number;
  last_event_time_ms: number;
}

/** The steps at which something was logged under a name, in order. `more`: those are not all. */
export interface MediaSteps {
  run_id: string;
  metric: string;
  kind: string;
  rank: number;
  steps: number[];
  more: boolean;
}

/** A metric that was logged, and the newest run that has it. */
export interface MetricName {
  metric: string;
  run: RunInfo;
}

/** `last` is the mean over ranks; null when there is no finite value. */
export interface MetricSummary {
  last: number | null;
  min: number | null;
  max: number | null;
}

/** A series that the stream speaks of for the first time; `total_points` is how many it had before. */
export interface NewSeries {
  id: number;
  run_id: string;
  metric: string;
  host: string;
  rank: number;
  device: number;
  unit: string;
  total_points: number;
}

/** One figure of the runs on show: a column of the run table, brought to one value. */
export interface NumberPanel {
  id: string;
  title?: string;
  w?: number;
  h?: number;
  kind: "number";
  column?: string;
  reduce?: "newest" | "min" | "max" | "mean";
}

/** Where a row comes from. */
export interface Origin {
  index: number | null;
  file: string | null;
  row: number | null;
}

/** Many series as columns, with the newest point of each: `run`, `metric`, `host` and `unit` are places in the lists of words. */
export interface Outline {
  runs: string[];
  metrics: string[];
  hosts: string[];
  units: string[];
  id: number[];
  run: number[];
  metric: number[];
  host: number[];
  rank: number[];
  device: number[];
  unit: number[];
  total_points: number[];
  nan_count: number[];
  step: number[];
  time: number[];
  value: (number | null)[];
}

/** Who the series of some runs are, by their numbers in the stream's epoch, as they were after its event `seq`: what the stream tells later is new to them. */
export interface OutlineAnswer {
  epoch: string;
  seq: number;
  outline: Outline;
}

/** A line per run through its values, and how much each column tells about the target. */
export interface ParallelPanel {
  id: string;
  title?: string;
  w?: number;
  h?: number;
  kind: "parallel";
  columns?: string[];
  target?: string;
}

/** Without a body, a pin is set. */
export interface Pin {
  pinned?: boolean;
}

/** A pin that is durable. */
export interface Pinned {
  success: boolean;
  id: string;
  pinned: boolean;
}

/** How many points were taken. */
export interface PointsAccepted {
  accepted: number;
}

/** Points by number; `missing` are numbers that could not be read now. */
export interface PointsAnswer {
  epoch: string;
  series: SeriesPoints[];
  missing: number[];
}

/** Rows as a worker is reading them, or from the files when none has reported any; `note` says so. */
export interface Preview {
  dataset_id: string;
  worker_id: string | null;
  epoch: number | null;
  position: number | null;
  columns: PreviewColumn[];
  rows: (Record<string, ImageCell | TextCell | BytesCell | ArrayCell | ListCell | string | number | boolean | Record<string, unknown> | null>)[];
  origins: Origin[];
  note: string | null;
}

/** A column; the type is empty when nobody said it. */
export interface PreviewColumn {
  name: string;
  type: string;
}

/** Counts that are missing are read from the files. */
export interface RegisterDataset {
  id: string;
  path: string;
  format?: string;
  name?: string | null;
  total_samples?: number | null;
  shard_size?: number | null;
  shuffle?: boolean;
  seed?: number;
  metadata?: Record<string, string>;
}

/** What a worker uses; null is what it did not measure. */
export interface Resources {
  cpu_percent: number | null;
  memory_used_bytes: number | null;
  gpu_metrics: GpuMetrics[];
  disk_read_bytes: number | null;
  disk_write_bytes: number | null;
  network_rx_bytes: number | null;
  network_tx_bytes: number | null;
}

/** What the client has is out of date; a snapshot follows. */
export interface Resync {
  reason: string;
}

/** A rule as it was set, and how it stands: `waiting` holds for some run, but not yet for `for_s`; `firing` does for `num_firing` runs. `last_alert` is its newest one, with what became of it. */
export interface RuleInfo {
  name: string;
  kind: "threshold" | "no_progress" | "bad_value" | "divergence" | "checkpoint_age";
  metric: string;
  comparison: "above" | "below";
  value: number | null;
  for_s: number;
  filter: string;
  baseline: string;
  tolerance_percent: number;
  severity: "info" | "warning" | "critical";
  targets: string[];
  enabled: boolean;
  state: "off" | "quiet" | "waiting" | "firing";
  num_firing: number;
  last_alert: Alert | null;
  deliveries: Delivery[];
}

/** The checkpoints of a run, and what it logged about them, newest first. */
export interface RunCheckpoints {
  run_id: string;
  checkpoints: Checkpoint[];
  series: RunSeries[];
  rows: CheckpointRow[];
}

/** A run is gone; its rows follow by themselves when the store is slow or away. */
export interface RunDeleted {
  success: boolean;
  rows_removed: boolean;
}

/** A run; what nobody said is null. `attempts` are those after its first one; `superseded_points` are of steps that a later attempt did again, and not among its `num_points`. `state` is decided by the observatory, `reason` says why, and `status` is the last word of the run's owner. Tags, group and notes are what people wrote, else what its script said; runs that are `archived` are kept and left out of lists. `wide_metrics` have more series than a sparse stream carries, with their number: it carries the first few. */
export interface RunInfo {
  run_id: string;
  start_time: number | null;
  start_time_ms: number | null;
  last_event_time: number | null;
  last_event_time_ms: number | null;
  latest_step: number | null;
  is_active: boolean;
  num_series: number;
  num_points: number;
  wide_metrics: Record<string, number>;
  superseded_points: number;
  attempts: AttemptBegan[];
  task_id: string | null;
  name: string | null;
  project: string | null;
  status: string | null;
  state: RunState;
  reason: string | null;
  notes: string | null;
  tags: string[];
  group: string | null;
  job_type: string | null;
  archived: boolean;
  config: Record<string, unknown>;
  forked_from: RunOrigin | null;
}

/** What a run has logged beside numbers, by name. `more`: there are further names; search for them. */
export interface RunMedia {
  run_id: string;
  keys: MediaKey[];
  more: boolean;
}

/** Series of a run. */
export interface RunMetrics {
  run_id: string;
  series: RunSeries[];
}

/** The run that a fork went on from, after this step. */
export interface RunOrigin {
  run_id: string;
  step: number;
}

/** A series and its points. `bad` counts NaN and Inf behind each point, `min` and `max` are the band that a point stands for. `attempt` is null, but for points that a later attempt superseded: then it is the one that measured them. `origin` is null, but for points of before a fork: then it is the run that measured them. */
export interface RunSeries {
  metric: string;
  host: string;
  rank: number;
  device: number;
  unit: string;
  attempt: number | null;
  origin: string | null;
  steps: number[];
  times: number[];
  values: (number | null)[];
  min: (number | null)[];
  max: (number | null)[];
  bad: number[];
  total_points: number;
  nan_count: number;
}

/** How a run stands. LOST may become RUNNING again: it means silence, and nobody knows why. */
export type RunState = "running" | "finished" | "failed" | "killed" | "lost";

/** A run as a whole: figures of each metric, and the values that its script has set. */
export interface RunSummary {
  run_id: string;
  metrics: Record<string, MetricSummary>;
  values: Record<string, unknown>;
}

/** Runs that a filter lets through, in order: `ids` are the first of them, `columns` their values in the same order, null where a run has none. `names` are the columns that could be asked for. */
export interface RunTable {
  total: number;
  matched: number;
  ids: string[];
  columns: Record<string, unknown[]>;
  names: string[];
}

/** How many runs were changed. */
export interface RunsChanged {
  changed: number;
}

/** Every run, and those that were just deleted. `partial`: only the runs that changed since the last such event, for a sparse stream. */
export interface RunsMeta {
  runs: RunInfo[];
  deleted: string[];
  partial: boolean;
}

/** A dashboard as somebody wants it kept. */
export interface SaveDashboard {
  name: string;
  project?: string;
  layout: Layout;
}

/** A saved dashboard. */
export interface SavedDashboard {
  id: string;
  project: string;
  name: string;
  version: number;
  author: string;
  updated_at_ms: number;
  layout: Layout;
}

/** A point per run: a column of the run table on each axis. */
export interface ScatterPanel {
  id: string;
  title?: string;
  w?: number;
  h?: number;
  kind: "scatter";
  x?: string;
  y?: string;
  log_x?: boolean;
  log_y?: boolean;
}

/** Panels under a heading that folds. */
export interface Section {
  title?: string;
  folded?: boolean;
  panels?: (LinePanel | ScatterPanel | BarPanel | ParallelPanel | NumberPanel | MarkdownPanel | HistogramPanel | ImagePanel | TablePanel)[];
}

/** The points of a series that an outline only named. `min`, `max` and `bad` are null where every point is itself. */
export interface SeriesPoints {
  id: number;
  total_points: number;
  nan_count: number;
  steps: number[];
  times: number[];
  values: (number | null)[];
  min: (number | null)[] | null;
  max: (number | null)[] | null;
  bad: number[] | null;
}

/** A thing that could not be dealt with, and how many it stands for. */
export interface SetAsideItem {
  item: string;
  reason: string;
  at_ms: number;
  count: number;
}

/** What one part of the server could not deal with; `items` are the newest few. */
export interface SetAsidePart {
  part: string;
  count: number;
  items: SetAsideItem[];
}

/** A rule; docs/alerts.md says what each kind needs. */
export interface SetRule {
  kind: "threshold" | "no_progress" | "bad_value" | "divergence" | "checkpoint_age";
  metric?: string;
  comparison?: "above" | "below";
  value?: number | null;
  for_s?: number;
  filter?: string;
  baseline?: string;
  tolerance_percent?: number;
  severity?: "info" | "warning" | "critical";
  targets?: string[];
  enabled?: boolean;
}

/** A target. A URL or password that is left out stays as it is known. */
export interface SetTarget {
  kind: "webhook" | "slack" | "email";
  url?: string;
  host?: string;
  port?: number;
  tls?: boolean;
  user?: string;
  password?: string;
  sender?: string;
  recipients?: string[];
  all_alerts?: boolean;
  quiet_from?: string;
  quiet_to?: string;
  timezone?: string;
}

/** A shard and who reads it. `worker_id` is the worker that reads most of it; in queue mode it took the shard last. `mode` says who decided: the group's loaders (lanes), a queue, or the coordinator (dealt); null: nobody reads it. */
export interface Shard {
  shard_id: number;
  worker_id: string | null;
  rank: number | null;
  alive: boolean | null;
  start_index: number;
  end_index: number;
  progress: number | null;
  epoch: number | null;
  readers: ShardReader[];
  task_id: string | null;
  mode: "lanes" | "queue" | "dealt" | null;
}

/** Samples of a shard that one worker reads. */
export interface ShardReader {
  worker_id: string;
  rank: number | null;
  alive: boolean;
  start_index: number;
  end_index: number;
}

/** What the sign-in form sends. */
export interface SignIn {
  token: string;
}

/** A rank whose steps take longest; `ratio` is to the median of its task. */
export interface SlowRank {
  rank: number;
  worker_id: string;
  step_time_s: number;
  ratio: number;
}

/** All that is cached. `reduced`: some series have fewer points than they could. Where there are many, `outline` stands in place of `series`, and `omitted_runs` names those of `runs` that are not even in it: GET /api/outline has them. `more_runs`: `runs` are the newest for a sparse stream, and so are the series; GET /api/runs has all. */
export interface Snapshot {
  epoch: string;
  runs: RunInfo[];
  series: SnapshotSeries[];
  reduced: boolean;
  omitted_series: number;
  outline: Outline | null;
  omitted_runs: string[];
  more_runs: boolean;
}

/** The same with its run, and its number in the stream's epoch. */
export interface SnapshotSeries {
  metric: string;
  host: string;
  rank: number;
  device: number;
  unit: string;
  attempt: number | null;
  origin: string | null;
  steps: number[];
  times: number[];
  values: (number | null)[];
  min: (number | null)[];
  max: (number | null)[];
  bad: number[];
  total_points: number;
  nan_count: number;
  id: number;
  run_id: string;
}

/** Places in the spool that were acknowledged and can be read no more. */
export interface SpoolDamage {
  places: number;
  num_bytes: number;
}

/** What the ranks of a task have of something: the least, the median and the most. */
export interface Spread {
  least: number;
  median: number;
  most: number;
}

/** Rows in the question's order, each with a value per column. `truncated`: there are more. */
export interface SqlAnswer {
  columns: SqlColumn[];
  rows: unknown[][];
  truncated: boolean;
  seconds: number;
}

/** A column by its name and its type, as ClickHouse calls it. */
export interface SqlColumn {
  name: string;
  type: string;
}

/** One SELECT in ClickHouse's SQL. */
export interface SqlQuestion {
  query: string;
}

/** `uptime` and `started_at` are the coordinator's, null while nothing is known of it; `problem` says why it cannot be reached. `metric_store_ready`: it answers, and what it holds is known here. */
export interface Status {
  connected: boolean;
  address: string;
  version: string;
  storage_backend: string;
  metric_store: string;
  metric_store_ready: boolean;
  metric_store_problem: string | null;
  spool_backlog_bytes: number;
  spool_damage: SpoolDamage;
  set_aside: SetAsidePart[];
  refused_batches: number;
  dropped_points: number;
  fenced_points: number;
  fenced_logs: number;
  observatory_started_at_ms: number;
  uptime: number | null;
  generation: number | null;
  term: number | null;
  cluster_id: string | null;
  started_at: number | null;
  started_at_ms: number | null;
  problem: string | null;
}

/** The data of every kind of event; each message carries one of them under its name. */
export interface StreamEvents {
  snapshot: Snapshot;
  delta: Delta;
  runs_meta: RunsMeta;
  state: ClusterState;
  log: LogNews;
  alert: AlertNews;
  resync: Resync;
}

/** It was done. */
export interface Success {
  success: boolean;
}

/** Measured by the coordinator over its sliding window: MB/s, requests per second, milliseconds. Null is what nobody measured. */
export interface SystemMetrics {
  checkpoint_throughput: number | null;
  coordinator_rps: number | null;
  active_workers: number;
  total_workers: number;
  barrier_latency_p99: number | null;
  shard_assignment_time: number | null;
  barrier_wait_p99: number | null;
  journal_commit_p99: number | null;
  loop_lag: number | null;
  window_s: number | null;
}

/** The table that runs logged under a key. */
export interface TablePanel {
  id: string;
  title?: string;
  w?: number;
  h?: number;
  kind: "table";
  key?: string;
}

/** A target, and what became of its alerts: the last one was sent at `last_at_ms` or, with a `problem`, given up then. `place` is the server that gets them; the rest of a URL is a secret. */
export interface TargetInfo {
  name: string;
  kind: "webhook" | "slack" | "email";
  place: string;
  host: string;
  port: number;
  tls: boolean;
  user: string;
  has_password: boolean;
  sender: string;
  recipients: string[];
  all_alerts: boolean;
  quiet_from: string;
  quiet_to: string;
  timezone: string;
  sent: number;
  failed: number;
  dropped: number;
  quieted: number;
  problem: string | null;
  last_at_ms: number | null;
}

/** A task; `progress` is in percent. It has `size` ranks now, of at least `min_workers` and at most `worker_count`; before its first attempt `size` is null. Each host should keep `spares` warm; `warm_spares` is null while none has any. `stuck_rank` is the rank that makes no step now, at `stuck_step`; `hang_timeout_s` says after how long such a rank is ended (0: never; null: learned from its steps). `slow_rank` is the straggler that is named now; `excluded_hosts` were left because of one, as `exclude_stragglers` asks. `fork` says where a forked one began. */
export interface Task {
  id: string;
  name: string;
  type: string;
  status: TaskStatus;
  worker_ids: string[];
  dataset_id: string | null;
  submitted_at: number | null;
  submitted_at_ms: number | null;
  started_at: number | null;
  started_at_ms: number | null;
  completed_at: number | null;
  completed_at_ms: number | null;
  progress: number | null;
  config: Record<string, unknown>;
  attempt: number;
  reason: string;
  worker_count: number;
  min_workers: number;
  size: number | null;
  grow_after_s: number;
  launcher: string;
  max_restarts: number;
  hang_timeout_s: number | null;
  stuck_rank: number | null;
  stuck_step: number | null;
  exclude_stragglers: boolean;
  gpus_per_worker: number;
  slow_rank: number | null;
  excluded_hosts: string[];
  budget: Budget;
  spares: number;
  warm_spares: WarmSpares | null;
  fork: Fork | null;
}

/** A task was accepted. */
export interface TaskCreated {
  task_id: string;
}

/** A new task was accepted, which begins with the checkpoint of `from_step`. */
export interface TaskForked {
  task_id: string;
  from_step: number;
}

/** A task goes on; `from_step` is null when it has no checkpoint. */
export interface TaskResumed {
  success: boolean;
  from_step: number | null;
}

/** Where a task stands. The last three are final. */
export type TaskStatus = "queued" | "running" | "recovering" | "stopping" | "completed" | "failed" | "stopped";

/** All attempts, and the share of wall time that went into training. */
export interface TaskTimeline {
  task_id: string;
  attempts: AttemptRow[];
  shares: TimeShares | null;
  goodput_percent: number | null;
}

/** The beginning of a long text. */
export interface TextCell {
  kind: "text";
  text: string;
  size: number;
}

/** Something that a run logged and that is no number. */
export interface TextEntry {
  metric: string;
  host: string;
  rank: number;
  attempt: number;
  step: number;
  event_time_ms: number;
  kind: string;
  text: string;
}

/** Seconds of wall time by what they went into; they add up to `wall_s`. Null is what nobody measured. */
export interface TimeShares {
  wall_s: number;
  starting_s: number;
  recovering_s: number;
  lost_s: number;
  training_s: number | null;
  barrier_s: number | null;
  checkpoint_s: number | null;
  section_s: number | null;
  unmeasured_s: number;
}

/** `sentence` says it whole. `rank` and `host` are where it began, null when nobody can say; `hit_ranks` are the others that it interrupted; `seconds_lost` is work to do again, and the time until work went on. */
export interface Verdict {
  task_id: string;
  kind: VerdictKind;
  sentence: string;
  cause: string;
  advice: string;
  rank: number | null;
  host: string | null;
  step: number | null;
  attempt: number | null;
  at: number | null;
  at_ms: number | null;
  hit_ranks: number[];
  seconds_lost: number | null;
  evidence: Evidence[];
}

/** The first cause. The first four are no fault; `unknown` names nobody. */
export type VerdictKind = "none" | "waiting" | "stopped" | "grown" | "exception" | "import_error" | "usage" | "bad_loss" | "disk_full" | "storage_refused" | "exit" | "crash" | "killed" | "out_of_memory" | "hang" | "suspended" | "cannot_start" | "host_lost" | "host_drained" | "asked_to_stop" | "straggler" | "coordinator_restarted" | "unknown";

/** The interpreters that wait for a restart of its ranks, on all its hosts: how many, and what they hold. */
export interface WarmSpares {
  wanted: number;
  warm: number;
  memory_bytes: number;
}

/** A worker that is alive or died. `state` is the finer state of gRPC, `section` what it does inside a step, `pid` its process on `host`. */
export interface Worker {
  id: string;
  ip: string;
  port: number;
  status: "active" | "idle" | "checkpointing" | "recovering" | "failed";
  state: string;
  member_state: string;
  gpu_count: number;
  last_heartbeat: number | null;
  last_heartbeat_ms: number | null;
  assigned_shards: number | null;
  current_epoch: number | null;
  current_step: number | null;
  current_task: string | null;
  rank: number;
  host: string | null;
  pid: number | null;
  resources: Resources | null;
  section: string | null;
  step_time_s: number | null;
  reason: string | null;
  incarnation: string | null;
  generation: number | null;
  agent_id: string | null;
}

export interface Answers {
  "GET /health": Health;
  "GET /status": Status;
  "GET /runs": RunInfo[];
  "PATCH /runs": RunsChanged;
  "GET /runs/table": RunTable;
  "GET /runs/{run_id}/info": RunInfo;
  "GET /runs/{run_id}/summary": RunSummary;
  "GET /runs/{run_id}/texts": TextEntry[];
  "PATCH /runs/{run_id}": RunInfo;
  "DELETE /runs/{run_id}": RunDeleted;
  "GET /metrics/{run_id}": RunMetrics;
  "POST /runs/{run_id}/points": PointsAccepted;
  "GET /runs/{run_id}/media": RunMedia;
  "GET /runs/{run_id}/media/steps": MediaSteps;
  "GET /runs/{run_id}/media/entries": MediaEntries;
  "GET /runs/{run_id}/heat": Heat;
  "GET /series": PointsAnswer;
  "GET /series/names": MetricName[];
  "GET /outline": OutlineAnswer;
  "GET /logs": LogEntry[];
  "GET /tasks/{task_id}/logs": LogEntry[];
  "GET /alerts/rules": AlertRules;
  "PUT /alerts/rules/{name}": Success;
  "DELETE /alerts/rules/{name}": Success;
  "PUT /alerts/targets/{name}": Success;
  "DELETE /alerts/targets/{name}": Success;
  "POST /alerts/targets/{name}/test": Success;
  "GET /workers": Worker[];
  "GET /fleet": Fleet;
  "GET /fleet/workers": FleetPage;
  "GET /checkpoints": Checkpoint[];
  "GET /barriers": Barrier[];
  "GET /metrics": SystemMetrics;
  "GET /alerts": Alert[];
  "GET /dashboard": Dashboard;
  "POST /checkpoints/{checkpoint_id}/pin": Pinned;
  "POST /checkpoints/{checkpoint_id}/unpin": Pinned;
  "GET /checkpoints/{run_id}": RunCheckpoints;
  "GET /tasks": Task[];
  "POST /tasks": TaskCreated;
  "GET /tasks/{task_id}": Task;
  "GET /tasks/{task_id}/course": TaskTimeline;
  "GET /tasks/{task_id}/why": Verdict;
  "POST /tasks/{task_id}/stop": Success;
  "POST /tasks/{task_id}/resume": TaskResumed;
  "POST /tasks/{task_id}/fork": TaskForked;
  "GET /hosts": Host[];
  "POST /hosts/{host}/drain": Success;
  "POST /hosts/{host}/undrain": Success;
  "GET /datasets": Dataset[];
  "POST /datasets": DatasetRegistered;
  "GET /datasets/{dataset_id}/shards": Shard[];
  "GET /datasets/{dataset_id}/preview": Preview;
  "POST /sql": SqlAnswer;
  "GET /dashboards": DashboardHead[];
  "GET /dashboards/{dashboard_id}": SavedDashboard;
  "PUT /dashboards/{dashboard_id}": SavedDashboard;
  "DELETE /dashboards/{dashboard_id}": DashboardDeleted;
  "GET /session": Caller;
  "POST /session": Success;
  "DELETE /session": Success;
}

export interface Bodies {
  "PATCH /runs": ChangeRuns;
  "PATCH /runs/{run_id}": ChangeRun;
  "POST /runs/{run_id}/points": Record<string, unknown>;
  "PUT /alerts/rules/{name}": SetRule;
  "PUT /alerts/targets/{name}": SetTarget;
  "POST /checkpoints/{checkpoint_id}/pin": Pin | null;
  "POST /tasks": CreateTask;
  "POST /tasks/{task_id}/fork": ForkTask;
  "POST /hosts/{host}/drain": Drain;
  "POST /datasets": RegisterDataset;
  "POST /sql": SqlQuestion;
  "PUT /dashboards/{dashboard_id}": SaveDashboard;
  "POST /session": SignIn;
}
