import { expect, test } from "vitest";
import type { CheckpointRow } from "@/api/wire";
import { RUN } from "@/testing/records";
import { loggedRow } from "./checkpoint-rows";

const POINT: CheckpointRow = {
  metric: "checkpoint_save",
  host: "",
  rank: 0,
  device: 65_535,
  step: 500,
  value: 12.5,
  unit: "",
  event_time: 0,
  event_time_ms: 7,
  tags: { path: "s3://models/500", size_bytes: 2_000_000, shards: [1, 2] },
};

test("what another writer's tags say is in the row, word by word", () => {
  const row = loggedRow(POINT, RUN, 0);
  expect(row).toMatchObject({ step: 500, status: "logged", size: 2_000_000, seconds: null, created: 7 });
  expect(row.detail).toBe("checkpoint_save 12.5 · path s3://models/500 · size_bytes 2000000 · shards [1,2]");
  expect(loggedRow({ ...POINT, tags: { status: "completed", duration_s: 2 } }, RUN, 0)).toMatchObject({
    status: "completed",
    seconds: 2,
    size: null,
  });
});
