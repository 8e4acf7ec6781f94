import { expect, test } from "vitest";
import type { TargetInfo } from "@/api/wire";
import { formOfTarget, newTarget, readTarget } from "./target-form";

const known: TargetInfo = {
  name: "mail",
  kind: "email",
  place: "smtp.here:25",
  host: "smtp.here",
  port: 25,
  tls: false,
  user: "u",
  has_password: true,
  sender: "s@here",
  recipients: ["a@here", "b@here"],
  all_alerts: true,
  quiet_from: "22:00",
  quiet_to: "07:00",
  timezone: "Europe/Berlin",
  sent: 0,
  failed: 0,
  dropped: 0,
  quieted: 0,
  problem: null,
  last_at_ms: null,
};

test("a change that touches nothing sends what is known, and no secret", () => {
  expect(readTarget(formOfTarget(known))).toEqual({
    request: {
      kind: "email",
      host: "smtp.here",
      port: 25,
      tls: false,
      user: "u",
      password: "",
      sender: "s@here",
      recipients: ["a@here", "b@here"],
      all_alerts: true,
      quiet_from: "22:00",
      quiet_to: "07:00",
      timezone: "Europe/Berlin",
    },
  });
});

test("a webhook is asked for its URL alone; a zone goes with quiet hours", () => {
  const form = { ...newTarget(), name: "hook", url: " http://here/x ", port: "many" };
  expect(readTarget(form)).toEqual({
    request: { kind: "webhook", url: "http://here/x", all_alerts: false, quiet_from: "", quiet_to: "" },
  });
  expect(readTarget({ ...form, kind: "email" })).toHaveProperty("errors.port");
});
