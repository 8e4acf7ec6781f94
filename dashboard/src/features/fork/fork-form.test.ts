import { describe, expect, it } from "vitest";
import { readFork } from "./fork-form";

const PLACE = { task_id: "t", step: 1250, checkpoint_id: null };
const EMPTY = { name: "", changes: "", skip: "" };

describe("readFork", () => {
  it("begins at or before the step that was clicked", () => {
    expect(readFork(EMPTY, PLACE)).toEqual({ request: { step: 1250, changes: {} } });
  });

  it("leaves the choice to the server when steps are left out", () => {
    expect(readFork({ ...EMPTY, skip: "1200..1260, 1300" }, PLACE)).toEqual({
      request: {
        skip: [
          [1200, 1260],
          [1300, 1300],
        ],
        changes: {},
      },
    });
  });

  it("keeps to the checkpoint that was named", () => {
    const read = readFork({ ...EMPTY, name: "calm" }, { ...PLACE, checkpoint_id: "step-1.a" });
    expect(read).toEqual({ request: { checkpoint_id: "step-1.a", name: "calm", changes: {} } });
  });

  it("reads values as JSON, and as text where they are none", () => {
    const changes = "lr = 1e-4\nlayers=[1, 2]\nkind=adam\nurl=a=b\n";
    const read = readFork({ ...EMPTY, changes }, PLACE);
    expect(read).toEqual({
      request: { step: 1250, changes: { lr: 1e-4, layers: [1, 2], kind: "adam", url: "a=b" } },
    });
  });

  it("says what is wrong", () => {
    expect(readFork({ name: "a b", changes: "lr", skip: "9..3" }, PLACE)).toEqual({
      errors: {
        name: expect.any(String),
        changes: expect.stringContaining("KEY=VALUE"),
        skip: "9..3 runs backwards.",
      },
    });
    expect(readFork({ ...EMPTY, skip: "soon" }, PLACE)).toHaveProperty("errors.skip");
  });
});
