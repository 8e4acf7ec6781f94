import { expect, test } from "vitest";
import { NEW_RULE, needs, RULE_KINDS, type RuleForm, readRule } from "./rule-form";

const form = (part: Partial<RuleForm>): RuleForm => ({ ...NEW_RULE, name: "r", metric: "loss", ...part });

test("what a kind does not ask for is not sent", () => {
  const typed = { value: "4", for_s: "60", baseline: "base", tolerance_percent: "5" };
  expect(readRule(form({ ...typed, kind: "bad_value" }))).toEqual({
    request: { kind: "bad_value", metric: "loss", filter: "", severity: "warning", targets: [], enabled: true },
  });
  for (const kind of Object.keys(RULE_KINDS) as RuleForm["kind"][]) {
    const read = readRule(form({ ...typed, kind }));
    if (!("request" in read)) throw new Error(kind);
    for (const field of ["metric", "value", "for_s", "baseline", "tolerance_percent"] as const) {
      expect(field in read.request).toBe(needs(kind, field));
    }
  }
});

test("what is no number is said at its field, and only where it is asked for", () => {
  expect(readRule(form({ value: "much", for_s: "1e999" }))).toEqual({
    errors: { value: "A number, such as 4 or 1e-3.", for_s: "A number, such as 4 or 1e-3." },
  });
  expect(readRule(form({ kind: "no_progress", value: "much", for_s: "60" }))).toHaveProperty("request.for_s", 60);
  expect(readRule(form({ name: " " }))).toHaveProperty("errors.name");
});

test("an empty field is left to the server", () => {
  const read = readRule(form({ value: "", for_s: "" }));
  expect(read).toHaveProperty("request");
  expect(read).not.toHaveProperty("request.value");
});
