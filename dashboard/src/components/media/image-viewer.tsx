import { useEffect, useRef } from "react";
import { requests } from "@/data/source";
import { placeOf } from "@/lib/media";
import { fetchFile } from "./file-url";
import { type Frame, Frames, SHOWN_ITEMS } from "./frames";
import type { Position } from "./position";

interface Props {
  run: string;
  metric: string;
  rank: number;
  steps: readonly number[];
  position: Position;
}

/** The pictures of one run at the slider's step, drawn to canvases of a fixed size: moving the slider lays nothing out. */
export function ImageViewer({ run, metric, rank, steps, position }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const frames = useRef<Frames | null>(null);
  const known = useRef(steps);
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const made = new Frames({
      entries: async (from, to) =>
        (await requests().mediaEntries(run, { metric, kind: "image", rank, from_step: from, to_step: to, limit: 200 }))
          .entries,
      picture: async (file) => createImageBitmap(await (await fetchFile(run, file)).blob()),
    });
    frames.current = made;
    made.setSteps(known.current);
    let asked = 0;
    const draw = () => {
      asked = 0;
      const all = known.current;
      const at = position.step === null ? all.length - 1 : placeOf(all, position.step);
      const frame = made.look(at);
      if (frame) paint(element, frame, metric);
      else element.setAttribute("aria-busy", "true");
    };
    const soon = () => {
      if (asked === 0) asked = requestAnimationFrame(draw);
    };
    const stops = [position.subscribe(soon), made.subscribe(soon)];
    soon();
    return () => {
      for (const stop of stops) stop();
      cancelAnimationFrame(asked);
      made.close();
    };
  }, [run, metric, rank, position]);
  useEffect(() => {
    known.current = steps;
    frames.current?.setSteps(steps);
    position.set(position.step);
  }, [steps, position]);
  return (
    <div
      ref={host}
      data-media={`${run}/${metric}`}
      className="grid grid-cols-[repeat(auto-fit,minmax(96px,1fr))] gap-2"
    />
  );
}

/** Canvases stay from frame to frame; only what differs is touched. */
function paint(host: HTMLElement, frame: Frame, metric: string): void {
  const shown = frame.items.slice(0, SHOWN_ITEMS);
  while (host.children.length > Math.max(1, shown.length)) host.lastElementChild?.remove();
  while (host.children.length < shown.length) host.append(newFigure());
  shown.forEach((item, i) => {
    const figure = host.children[i] as HTMLElement;
    const [canvas, caption] = [figure.firstElementChild as HTMLCanvasElement, figure.lastElementChild as HTMLElement];
    const bitmap = frame.bitmaps[i] ?? null;
    const left = i === SHOWN_ITEMS - 1 ? frame.items.length - SHOWN_ITEMS : 0;
    const more = left > 0 ? ` (and ${left} more)` : "";
    caption.textContent = bitmap ? `${item.caption}${more}` : "This picture cannot be shown.";
    canvas.setAttribute("aria-label", `${metric} at step ${frame.step}${item.caption ? `: ${item.caption}` : ""}`);
    canvas.width = bitmap?.width ?? 1;
    canvas.height = bitmap?.height ?? 1;
    if (bitmap) canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
  });
  host.dataset["step"] = String(frame.step);
  host.dataset["frames"] = String(Number(host.dataset["frames"] ?? 0) + 1);
  host.removeAttribute("aria-busy");
}

function newFigure(): HTMLElement {
  const figure = document.createElement("figure");
  figure.className = "min-w-0 max-w-80 [contain:layout]";
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  canvas.className = "aspect-square w-full rounded-md bg-sunken object-contain [image-rendering:pixelated]";
  const caption = document.createElement("figcaption");
  caption.className = "mt-1 h-4 truncate text-2xs leading-4 text-muted";
  figure.append(canvas, caption);
  return figure;
}
