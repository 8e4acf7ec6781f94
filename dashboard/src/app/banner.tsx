import type { ReactNode } from "react";
import { useNow } from "@/hooks/now";
import { cx } from "@/lib/cx";
import { formatAge } from "@/lib/format";
import { useBuild } from "@/stores/build";
import { useCluster } from "@/stores/cluster";
import { useLink } from "@/stores/link";
import { useView } from "@/stores/view";

/** One line above every page when what is shown is not simply the present: recorded, old, of another build, or without coordinator. */
export function Banner() {
  const demo = useView((view) => view.demo);
  const { state, detail, retryAt, lastEventAt } = useLink();
  const coordinator = useCluster((cluster) => cluster.coordinator);
  const outdated = useBuild((build) => build.outdated);
  const now = useNow(1000);
  if (demo) {
    return (
      <Line tone="accent">
        <strong className="font-semibold">DEMO</strong> A real training job, recorded and played back in this browser.
        Nothing happens now and nothing is sent.{" "}
        <button
          type="button"
          className="font-medium underline"
          onClick={() => useView.getState().set({ demo: false, runs: null })}
        >
          Go live
        </button>
      </Line>
    );
  }
  if (state === "disconnected") {
    const age = lastEventAt === null ? "" : ` What you see is from ${formatAge(lastEventAt, now)}.`;
    return (
      <Line tone="bad">
        {detail}
        {age} Training is not affected by this.
      </Line>
    );
  }
  if (state === "connecting" && retryAt !== null) {
    return (
      <Line tone="warn">
        {detail} What the server says by request is shown; charts stand still until the stream is back.
      </Line>
    );
  }
  if (outdated) {
    return (
      <Line tone="warn">
        The server has a newer version of this page; until you reload, this one may show things wrongly.{" "}
        <button type="button" className="font-medium underline" onClick={() => location.reload()}>
          Reload
        </button>
      </Line>
    );
  }
  if (coordinator && !coordinator.connected) {
    return (
      <Line tone="warn">
        The coordinator does not answer. Workers keep training and their metrics still arrive; cluster state is the last
        one known.
      </Line>
    );
  }
  if (coordinator?.metric_store_problem === "starting") {
    return <Line tone="warn">The metric store is starting. Live charts go on; older points follow in a moment.</Line>;
  }
  if (coordinator?.metric_store_problem) {
    return (
      <Line tone="warn">
        The metric store has a problem: {coordinator.metric_store_problem} Live charts go on; what arrives is kept on
        disk until it is back.
      </Line>
    );
  }
  return null;
}

const TONES = { accent: "bg-accent-soft text-accent", warn: "bg-warn-soft text-warn", bad: "bg-bad-soft text-bad" };

function Line({ tone, children }: { tone: keyof typeof TONES; children: ReactNode }) {
  return (
    <div role="status" className={cx("shrink-0 px-4 py-1 text-xs leading-5 max-md:px-3", TONES[tone])}>
      {children}
    </div>
  );
}
