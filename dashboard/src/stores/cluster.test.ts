import { beforeEach, expect, it } from "vitest";
import { applyState, EMPTY_CLUSTER, useCluster } from "./cluster";

beforeEach(() => useCluster.setState(EMPTY_CLUSTER, true));

it("is loaded by an answer with everything, not by an event that came before it", () => {
  applyState({ workers: [] });
  expect(useCluster.getState().loaded).toBe(false);
  applyState({ workers: [], tasks: [], datasets: [] });
  expect(useCluster.getState().loaded).toBe(true);
});
