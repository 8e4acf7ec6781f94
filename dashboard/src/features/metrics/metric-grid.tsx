import { useState } from "react";
import { MetricCard } from "@/components/metric/metric-card";
import { Sentinel } from "@/components/ui/sentinel";
import { sectionOf } from "@/lib/metric-tabs";
import { usePrefs } from "@/stores/prefs";
import type { MetricEntry } from "./use-metrics";

/** Cards are cheap but not free: a thousand are mounted as the page is scrolled, not at once, and few before the first. */
const FIRST = 12;
const PAGE = 24;
const SECTIONS_FROM = 10;

const GRID = "grid grid-cols-[repeat(auto-fill,minmax(min(100%,340px),1fr))] gap-3";

interface SectionProps {
  title: string | null;
  metrics: readonly MetricEntry[];
  /** Of all its metrics; those further down are mounted later. */
  count: number;
}

function Section({ title, metrics, count }: SectionProps) {
  const grid = (
    <div className={GRID}>
      {metrics.map((metric) => (
        <MetricCard key={metric.name} metric={metric.name} />
      ))}
    </div>
  );
  if (title === null) return grid;
  return (
    <details open className="flex flex-col">
      <summary className="mb-2 flex items-baseline gap-2 text-xs font-semibold select-none">
        {title}
        <span className="font-normal text-faint">{count}</span>
      </summary>
      {grid}
    </details>
  );
}

export function MetricGrid({ metrics }: { metrics: readonly MetricEntry[] }) {
  const pins = usePrefs((prefs) => prefs.pins);
  const [limit, setLimit] = useState(FIRST);
  const pinned = metrics.filter((metric) => pins.includes(metric.name));
  const rest = metrics.filter((metric) => !pins.includes(metric.name));
  const mounted = rest.slice(0, limit);
  const sections = new Map<string, MetricEntry[]>();
  for (const metric of mounted) {
    const title = sectionOf(metric.name);
    sections.set(title, [...(sections.get(title) ?? []), metric]);
  }
  const counts = new Map<string, number>();
  for (const { name } of rest) counts.set(sectionOf(name), (counts.get(sectionOf(name)) ?? 0) + 1);
  const grouped = rest.length >= SECTIONS_FROM && sections.size > 1 && sections.size < mounted.length;
  return (
    <div className="flex flex-col gap-4">
      {pinned.length > 0 && <Section title="Pinned" metrics={pinned} count={pinned.length} />}
      {grouped
        ? [...sections].map(([title, list]) => (
            <Section key={title} title={title} metrics={list} count={counts.get(title) ?? 0} />
          ))
        : mounted.length > 0 && (
            <Section title={pinned.length > 0 ? "All" : null} metrics={mounted} count={rest.length} />
          )}
      {rest.length > limit && <Sentinel onSeen={() => setLimit(limit + PAGE)} />}
    </div>
  );
}
