import { expect, test } from "vitest";
import { matcher } from "./matcher";
import { headlines, sectionOf, sortByInterest, tabOf, unitOf } from "./metric-tabs";

test.each([
  ["loss", "training"],
  ["loss_t1", "training"],
  ["train/acc", "training"],
  ["throughput/tokens_per_sec", "training"],
  ["token_count", "training"],
  ["tokens/total", "progress"],
  ["time_to_loss_3", "progress"],
  ["milestone/a", "progress"],
  ["progress/percent", "progress"],
  ["moe/load", "model"],
  ["gsa_gate", "model"],
  ["null_ratio", "model"],
  ["router/z", "model"],
  ["sys.gpu.0.util_percent", "system"],
  ["cpu_percent", "system"],
  ["net.rx", "system"],
  ["checkpoint_save", "checkpoints"],
  ["something_else", "training"],
])("%s goes to %s", (metric, tab) => expect(tabOf(metric)).toBe(tab));

test("the user's rules come first, the longest prefix wins", () => {
  const own = [
    { prefix: "moe", tab: "training" },
    { prefix: "moe/deep", tab: "system" },
  ] as const;
  expect(tabOf("moe/x", own)).toBe("training");
  expect(tabOf("moe/deep/x", own)).toBe("system");
  expect(tabOf("gsa/x", own)).toBe("model");
});

test("loss first, then by name with numbers by their size", () => {
  expect(sortByInterest(["layer/10", "layer/9", "zeta", "lr", "loss/b", "loss", "layer/9/b"])).toEqual([
    "loss",
    "loss/b",
    "lr",
    "layer/9",
    "layer/9/b",
    "layer/10",
    "zeta",
  ]);
});

test("sections come from the prefix", () => {
  expect(sectionOf("val/loss")).toBe("val");
  expect(sectionOf("sys.cpu_percent")).toBe("cpu");
  expect(sectionOf("lr")).toBe("general");
});

test("the story of a run: one metric of each kind first", () => {
  expect(headlines(["loss", "loss/aux", "lr", "step_time", "throughput/x", "moe/a"], 3)).toEqual([
    "loss",
    "throughput/x",
    "step_time",
  ]);
});

test("a broken expression is searched as text, and says what is wrong", () => {
  expect(matcher("loss(").problem).not.toBeNull();
  expect(matcher("loss(").test("a loss( b")).toBe(true);
  expect(matcher("^lo.s$").test("LOSS")).toBe(true);
  expect(matcher("").test("anything")).toBe(true);
});

test.each([
  ["sys.net.lo.sent_bytes_per_s", "", "B/s"],
  ["sys.cpu_percent", "", "%"],
  ["sys.disk.data.percent", "", "%"],
  ["batch/data_wait_ms", "", "ms"],
  ["loss", "", ""],
  ["loss_ms", "nats", "nats"],
])("the unit of %s (%s) is %s", (metric, unit, text) => expect(unitOf(metric, unit)).toBe(text));
