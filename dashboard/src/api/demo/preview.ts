/** Samples as a worker would read them: text, pictures and series, drawn from the seed. */
import type { Preview, PreviewCell } from "../shards";
import { drift, unit } from "./noise";

const TEXTS = [
  "The estuary narrows where the two rivers meet, and the silt they carry settles into long bars that shift with each winter flood.",
  "To fold the dough, pull one side up and over the middle, turn the bowl a quarter, and repeat until it resists.",
  "A heap is a tree in which every parent is no larger than its children; the smallest item is therefore always at the root.",
  "Early clocks lost a quarter of an hour a day. The pendulum cut that to seconds, and for the first time the minute hand was worth fitting.",
  "Swifts sleep on the wing. A young bird that leaves the nest in July may not land again until it breeds, two or three years later.",
  "The treaty fixed the border along the watershed, which nobody had surveyed, and two valleys were claimed by both sides for a century.",
];
const LABELS = ["tench", "lighthouse", "espresso", "barn owl", "violin", "volcano", "mushroom", "trolleybus"];

function picture(seed: number): string {
  const hue = Math.floor(unit(seed, 1) * 360);
  const shapes = Array.from({ length: 5 }, (_, i) => {
    const [x, y, r] = [unit(seed, i, 2) * 64, unit(seed, i, 3) * 64, 8 + unit(seed, i, 4) * 20];
    return `<circle cx="${x.toFixed(0)}" cy="${y.toFixed(0)}" r="${r.toFixed(0)}" fill="hsl(${(hue + i * 28) % 360} 38% ${30 + i * 10}%)" opacity=".8"/>`;
  }).join("");
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" fill="hsl(${hue} 25% 22%)"/>${shapes}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function row(dataset: string, seed: number): Record<string, PreviewCell> {
  if (dataset === "imagenet-1k") {
    const label = Math.floor(unit(seed, 9) * LABELS.length);
    return {
      image: { kind: "image", thumbnail: picture(seed), width: 500, height: 375 },
      label,
      class: LABELS[label] ?? "",
    };
  }
  if (dataset === "ett-hourly") {
    const values = Array.from({ length: 16 }, (_, i) => 24 + 9 * drift(seed, i, 5) + 2 * unit(seed, i));
    return {
      oil_temp: { kind: "array", dtype: "float32", shape: [48], values },
      target: Number((values[15] ?? 0).toFixed(2)),
    };
  }
  const text = TEXTS[Math.floor(unit(seed, 5) * TEXTS.length)] ?? "";
  return { text, tokens: Math.round(text.length / 4.2), score: Number((2 + unit(seed, 6) * 3).toFixed(2)) };
}

const TYPES: Record<string, Record<string, string>> = {
  "imagenet-1k": { image: "jpeg", label: "int64", class: "string" },
  "ett-hourly": { oil_temp: "float32[48]", target: "float32" },
  "fineweb-sample": { text: "string", tokens: "int32", score: "float32" },
};

export function makePreview(dataset: string, worker: string | null, n: number, step: number): Preview {
  const offset = worker ? Number(worker.split("-")[1] ?? 0) * 50_000 : 0;
  const seeds = Array.from({ length: n }, (_, i) => offset + step * 7 + i);
  return {
    dataset_id: dataset,
    worker_id: worker,
    columns: Object.entries(TYPES[dataset] ?? {}).map(([name, type]) => ({ name, type })),
    rows: seeds.map((seed) => row(dataset, seed)),
    origins: seeds.map((_, i) => ({ index: offset + ((step * 32 + i) % 50_000) })),
  };
}
