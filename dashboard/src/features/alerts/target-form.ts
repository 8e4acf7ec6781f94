/** The form of a target: text fields in, a request or what is no number out. The rest the server decides. */
import type { SetTarget, TargetInfo } from "@/api/wire";
import type { Errors } from "./rule-form";

/** Fields are named as the server names them, so that a refusal finds its place. */
export interface TargetForm {
  name: string;
  kind: SetTarget["kind"];
  url: string;
  host: string;
  port: string;
  tls: boolean;
  user: string;
  password: string;
  sender: string;
  recipients: string;
  all_alerts: boolean;
  quiet_from: string;
  quiet_to: string;
  timezone: string;
}

export type TargetField = keyof TargetForm;

export const TARGET_KINDS: Record<SetTarget["kind"], string> = {
  webhook: "Webhook",
  slack: "Slack, Mattermost",
  email: "E-mail",
};

export function newTarget(): TargetForm {
  return {
    name: "",
    kind: "webhook",
    url: "",
    host: "",
    port: "587",
    tls: true,
    user: "",
    password: "",
    sender: "",
    recipients: "",
    all_alerts: false,
    quiet_from: "",
    quiet_to: "",
    timezone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC",
  };
}

/** Without its secrets: the server never shows them, and keeps those that are left out. */
export function formOfTarget(target: TargetInfo): TargetForm {
  const { kind, host, tls, user, sender, all_alerts, quiet_from, quiet_to } = target;
  const quiet = quiet_from ? { quiet_from, quiet_to, timezone: target.timezone } : {};
  const mail = kind === "email" ? { host, tls, user, sender, port: String(target.port) } : {};
  return {
    ...newTarget(),
    ...mail,
    ...quiet,
    name: target.name,
    kind,
    all_alerts,
    recipients: target.recipients.join(", "),
  };
}

export function readTarget(form: TargetForm): { request: SetTarget } | { errors: Errors<TargetField> } {
  const errors: Errors<TargetField> = {};
  if (!form.name.trim()) errors.name = "A target needs a name: rules choose it by that.";
  const port = Number(form.port);
  if (form.kind === "email" && !Number.isInteger(port)) errors.port = "A whole number, such as 587.";
  if (Object.keys(errors).length > 0) return { errors };
  const { kind, all_alerts, quiet_from, quiet_to, timezone } = form;
  const words = form.recipients.split(/[\s,;]+/).filter(Boolean);
  const place =
    kind === "email"
      ? {
          host: form.host.trim(),
          port,
          tls: form.tls,
          user: form.user.trim(),
          password: form.password,
          sender: form.sender.trim(),
          recipients: words,
        }
      : { url: form.url.trim() };
  // A zone is asked for with quiet hours only.
  return {
    request: { kind, ...place, all_alerts, quiet_from, quiet_to, ...((quiet_from || quiet_to) && { timezone }) },
  };
}
