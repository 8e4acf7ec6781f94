// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { RunInfo } from "@/api/wire";
import { DEFAULT_SHOWN, setRuns, useCatalog } from "@/stores/catalog";
import { useView } from "@/stores/view";
import { foreignMetric, metricQuery, workerQuery } from "./targets";

test("what is typed is a question to the server: a rank is a number, the kind is no part of it", () => {
  expect(workerQuery("rank 57")).toEqual({ q: "", rank: 57 });
  expect(workerQuery("worker  host-3 Rank 7")).toEqual({ q: "host-3", rank: 7 });
  expect(workerQuery("host-3 rank")).toEqual({ q: "host-3 rank" });
});

test("a metric is asked for by its name, without the word for the kind", () => {
  expect(metricQuery(" metric  val loss ")).toBe("val loss");
  expect(metricQuery("metrics")).toBe("");
  expect(metricQuery("geometric/mean")).toBe("geometric/mean");
});

test("a metric of a run that nobody was told of shows the run, too", () => {
  const run = (id: string, at: number) => ({ run_id: id, start_time_ms: at, is_active: false }) as RunInfo;
  const shown = Array.from({ length: DEFAULT_SHOWN }, (_, i) => run(`new-${i}`, 100 - i));
  setRuns(shown);
  const target = foreignMetric({ metric: "rare/figure", run: run("old", 1) });
  expect([target.kind, target.name]).toEqual(["metric", "rare/figure · old"]);
  const wanted = [...shown.map((one) => one.run_id), "old"];
  for (const _ of [1, 2]) {
    expect(target.open()).toContain("/metrics");
    expect(useCatalog.getState().runs.map((known) => known.run_id)).toEqual(wanted);
    expect(useView.getState()).toMatchObject({ focus: "rare/figure", runs: wanted });
  }
});
