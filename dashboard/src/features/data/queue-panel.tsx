import type { DatasetQueue } from "@/api/wire";
import { PageLink } from "@/components/ui/page-link";
import { Panel } from "@/components/ui/panel";
import { cx } from "@/lib/cx";
import { formatCount, formatPercent } from "@/lib/format";

/** What of the epoch counts, what is lent to workers, what is still to be lent. */
export function QueuePanel({ queue }: { queue: DatasetQueue }) {
  const parts = [
    { label: "Committed", samples: queue.committed_samples, fill: "bg-ok" },
    { label: "Lent", samples: queue.leased_samples, fill: "bg-accent" },
    { label: "Waiting", samples: queue.remaining_samples, fill: "bg-hover" },
  ];
  const share = (samples: number) => (queue.num_samples > 0 ? (samples / queue.num_samples) * 100 : 0);
  const words = parts.map((one) => `${one.label} ${formatPercent(share(one.samples), 1)}`).join(", ");
  const workers = Object.entries(queue.workers);
  return (
    <Panel
      title="Queue"
      note={`epoch ${formatCount(queue.epoch)}${queue.finished ? ", finished" : ""}: shards go to whoever is free`}
      actions={
        queue.task_id && (
          <PageLink page="tasks" id={queue.task_id} className="text-xs font-medium text-accent hover:underline">
            {queue.task_id}
          </PageLink>
        )
      }
    >
      <div role="img" aria-label={words} className="flex h-4 overflow-hidden rounded">
        {parts.map((one) => (
          <span key={one.label} className={one.fill} style={{ width: `${share(one.samples)}%` }} />
        ))}
      </div>
      <ul className="mt-2.5 flex flex-wrap gap-x-6 gap-y-1.5 text-xs">
        {parts.map((one) => (
          <li key={one.label} className="flex items-baseline gap-1.5">
            <span aria-hidden="true" className={cx("size-2 rounded-[2px]", one.fill)} />
            <span className="text-muted">{one.label}</span>
            <span className="font-mono">{formatCount(one.samples)}</span>
            <span className="font-mono text-faint">{formatPercent(share(one.samples), 1)}</span>
          </li>
        ))}
      </ul>
      <p className="mt-2.5 text-xs text-muted">
        {formatCount(queue.leased_shards)} of {formatCount(queue.num_shards)} shards are lent
        {queue.read_shards > 0 && `, ${formatCount(queue.read_shards)} of them read and waiting for a commit`}
        {workers.length > 0 && ": "}
        {workers.map(([worker, held], i) => (
          <span key={worker}>
            {i > 0 && ", "}
            <PageLink page="cluster" id={worker} className="hover:underline">
              {worker}
            </PageLink>{" "}
            <span className="font-mono">{held}</span>
          </span>
        ))}
        .
      </p>
    </Panel>
  );
}
