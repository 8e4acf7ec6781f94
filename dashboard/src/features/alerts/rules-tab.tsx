import { useState } from "react";
import type { RuleInfo, TargetInfo } from "@/api/wire";
import { Button } from "@/components/ui/button";
import { Confirm, describe } from "@/components/ui/confirm";
import { Empty, Skeleton } from "@/components/ui/empty";
import { Panel } from "@/components/ui/panel";
import { requests } from "@/data/source";
import { useResource } from "@/hooks/resource";
import { useMay, useRights } from "@/stores/rights";
import { RuleDialog } from "./rule-dialog";
import { RuleRow } from "./rule-row";
import { TargetDialog } from "./target-dialog";
import { TargetRow } from "./target-row";

/** As often as the server looks whether a rule holds. */
const EVERY_MS = 2000;

type Open =
  | { what: "rule"; one: RuleInfo | null }
  | { what: "target"; one: TargetInfo | null }
  | { what: "delete"; about: string; says: string; remove(): Promise<unknown> };

export function RulesTab() {
  const [open, setOpen] = useState<Open | null>(null);
  const { data, error, refetch } = useResource(["alert-rules"], (it, signal) => it.alertRules(signal), {
    everyMs: EVERY_MS,
  });
  const who = useRights((state) => state.who);
  const mayChange = useMay("PUT /alerts/rules/{name}");
  const close = () => setOpen(null);
  const saved = () => void refetch();
  if (!data) {
    if (!error) return <Skeleton rows={6} />;
    return (
      <Empty title="The rules could not be read" tone="bad">
        {describe(error)}
      </Empty>
    );
  }
  const { rules, targets } = data;
  const add = (what: "rule" | "target") => (
    <Button needs={`PUT /alerts/${what}s/{name}`} onClick={() => setOpen({ what, one: null })}>
      New {what}
    </Button>
  );
  return (
    <>
      {who !== null && !mayChange && (
        <p className="text-xs text-muted">You may see rules and targets. An operator may change them.</p>
      )}
      <Panel title="Rules" note="looked at every two seconds" actions={add("rule")} flush>
        <ul aria-label="Alert rules">
          {rules.map((rule) => (
            <RuleRow
              key={rule.name}
              rule={rule}
              onEdit={() => setOpen({ what: "rule", one: rule })}
              onDelete={() =>
                setOpen({
                  what: "delete",
                  about: `rule ${rule.name}`,
                  says: "It is watched no more. Its alerts stay in the list of events.",
                  remove: () => requests().deleteRule(rule.name),
                })
              }
            />
          ))}
        </ul>
        {rules.length === 0 && (
          <Empty title="No rule of your own yet">
            NaN and Inf, losses that run away, stalls, stragglers and lost workers are watched without one.
          </Empty>
        )}
      </Panel>
      <Panel title="Targets" note="who is told" actions={add("target")} flush>
        <ul aria-label="Alert targets">
          {targets.map((target) => (
            <TargetRow
              key={target.name}
              target={target}
              onEdit={() => setOpen({ what: "target", one: target })}
              onDelete={() =>
                setOpen({
                  what: "delete",
                  about: `target ${target.name}`,
                  says: "Rules that name it tell it no more.",
                  remove: () => requests().deleteTarget(target.name),
                })
              }
            />
          ))}
        </ul>
        {targets.length === 0 && (
          <Empty title="Nobody is told yet">A webhook, a channel of Slack or Mattermost, or an address for mail.</Empty>
        )}
      </Panel>
      {open?.what === "rule" && <RuleDialog rule={open.one} {...{ targets }} onSaved={saved} onClose={close} />}
      {open?.what === "target" && <TargetDialog target={open.one} onSaved={saved} onClose={close} />}
      {open?.what === "delete" && (
        <Confirm
          title={`Delete ${open.about}?`}
          verb="Delete"
          onClose={close}
          onConfirm={async () => {
            await open.remove();
            await refetch();
          }}
        >
          {open.says}
        </Confirm>
      )}
    </>
  );
}
