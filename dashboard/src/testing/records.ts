/** Records for tests that care about a few of their fields. */
import type { LogEntry, RunInfo } from "@/api/wire";

export const RUN: RunInfo = {
  run_id: "r",
  start_time: 1,
  start_time_ms: 1000,
  last_event_time: 2,
  last_event_time_ms: 2000,
  latest_step: 3,
  is_active: true,
  num_series: 0,
  num_points: 0,
  superseded_points: 0,
  attempts: [],
  task_id: null,
  name: null,
  project: null,
  status: null,
  state: "running",
  reason: null,
  notes: null,
  tags: [],
  group: null,
  job_type: null,
  archived: false,
  config: {},
  forked_from: null,
};

export const LINE: LogEntry = {
  id: "log_0",
  timestamp: 0,
  timestamp_ms: 0,
  level: "info",
  message: "",
  source: "worker",
  task_id: null,
  worker_id: null,
  rank: null,
  host: "",
  stream: "",
  attempt: 1,
};
