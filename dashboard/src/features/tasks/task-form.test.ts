import { expect, test } from "vitest";
import { EMPTY_FORM, readForm } from "./task-form";

const GOOD = { ...EMPTY_FORM, name: "imagenet-resnet50", dataset: "ds-001", workers: "8" };

test("a good form is the request of the spec", () => {
  expect(readForm(GOOD)).toEqual({
    request: {
      name: "imagenet-resnet50",
      type: "training",
      dataset_id: "ds-001",
      worker_count: 8,
      hang_timeout_s: null,
      config: { learning_rate: 0.001, batch_size: 32 },
    },
  });
});

test.each([
  [{ name: "" }, "name"],
  [{ name: "has spaces" }, "name"],
  [{ type: " " }, "type"],
  [{ dataset: "" }, "dataset"],
  [{ workers: "0" }, "workers"],
  [{ workers: "2.5" }, "workers"],
  [{ workers: "many" }, "workers"],
  [{ workers: "8..2" }, "workers"],
  [{ workers: "0..4" }, "workers"],
  [{ workers: "2.." }, "workers"],
  [{ workers: "99999999999999999999" }, "workers"],
  [{ hangTimeout: "2" }, "hangTimeout"],
  [{ hangTimeout: "-1" }, "hangTimeout"],
  [{ hangTimeout: "soon" }, "hangTimeout"],
  [{ hangTimeout: "1e99" }, "hangTimeout"],
  [{ spares: "-1" }, "spares"],
  [{ spares: "" }, "spares"],
  [{ spares: "1.5" }, "spares"],
  [{ spares: "999999999" }, "spares"],
  [{ gpus: "two" }, "gpus"],
  [{ gpus: "1025" }, "gpus"],
  [{ config: "{" }, "config"],
  [{ config: "[1]" }, "config"],
])("%j is refused at %s", (change, field) => {
  const read = readForm({ ...GOOD, ...change });
  expect("errors" in read && Object.keys(read.errors)).toEqual([field]);
});

test("an empty config is an empty object", () => {
  expect(readForm({ ...GOOD, config: "  " })).toMatchObject({ request: { config: {} } });
});

test("two numbers are an elastic task", () => {
  expect(readForm({ ...GOOD, workers: " 2..8 " })).toMatchObject({ request: { worker_count: 8, min_workers: 2 } });
});

test("a hang timeout is seconds, or off", () => {
  expect(readForm({ ...GOOD, hangTimeout: " 90.5 " })).toMatchObject({ request: { hang_timeout_s: 90.5 } });
  expect(readForm({ ...GOOD, hangTimeout: "Off" })).toMatchObject({ request: { hang_timeout_s: 0 } });
});

test("spares are asked for only when there are to be some", () => {
  expect(readForm({ ...GOOD, spares: " 4 " })).toMatchObject({ request: { spares: 4 } });
});

test("cards are asked for only when there are to be some", () => {
  expect(readForm({ ...GOOD, gpus: " 2 " })).toMatchObject({ request: { gpus_per_worker: 2 } });
  expect(readForm(GOOD)).not.toHaveProperty("request.gpus_per_worker");
});

test("slow hosts are left only when that is asked for", () => {
  expect(readForm({ ...GOOD, excludeStragglers: true })).toMatchObject({ request: { exclude_stragglers: true } });
  expect(readForm(GOOD)).not.toHaveProperty("request.exclude_stragglers");
});
