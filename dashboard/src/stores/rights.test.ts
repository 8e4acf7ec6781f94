import { expect, test } from "vitest";
import { NO_RIGHTS_KNOWN, setRights, useRights } from "./rights";

test("what the server allows is known by the names that requests have here", () => {
  expect(useRights.getState()).toBe(NO_RIGHTS_KNOWN);
  setRights({ who: "operator", may: ["POST /api/tasks", "PATCH /api/runs/{run_id}"] });
  const { who, may } = useRights.getState();
  expect(who).toBe("operator");
  expect([...may]).toEqual(["POST /tasks", "PATCH /runs/{run_id}"]);
});
