import { useEffect, useRef } from "react";
import { frameLoop } from "@/data/frame";

interface Props {
  label: string;
  /** Read at every draw; nulls leave gaps. */
  read(): readonly (number | null)[];
  subscribe(listener: () => void): () => void;
  height?: number;
  /** Rates stand on zero; a loss is shown between its own extremes. */
  fromZero?: boolean;
}

/** A small line with a faint fill, drawn outside React. */
export function Sparkline({ label, read, subscribe, height = 40, fromZero = true }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const chart = { draw: () => canvas.current && paint(canvas.current, read(), fromZero) };
    const mark = () => frameLoop.mark(chart);
    const observer = new ResizeObserver(mark);
    if (canvas.current) observer.observe(canvas.current);
    const unsubscribe = subscribe(mark);
    mark();
    return () => {
      observer.disconnect();
      unsubscribe();
      frameLoop.forget(chart);
    };
  }, [read, subscribe, fromZero]);
  return <canvas ref={canvas} role="img" aria-label={label} className="block w-full" style={{ height }} />;
}

function paint(canvas: HTMLCanvasElement, values: readonly (number | null)[], fromZero: boolean): void {
  const ctx = canvas.getContext("2d");
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!ctx || width === 0) return;
  const scale = devicePixelRatio;
  canvas.width = width * scale;
  canvas.height = height * scale;
  ctx.scale(scale, scale);
  const known = values.filter((value): value is number => value !== null);
  if (known.length < 2) return;
  const low = fromZero ? Math.min(0, ...known) : Math.min(...known);
  const high = Math.max(...known);
  const y = (value: number) => height - 2 - ((value - low) / (high - low || 1)) * (height - 5);
  const x = (i: number) => (i / (values.length - 1)) * width;
  const accent = getComputedStyle(canvas).getPropertyValue("--accent").trim();
  ctx.strokeStyle = accent;
  ctx.lineWidth = 1.5;
  ctx.lineJoin = "round";
  ctx.beginPath();
  let pen = false;
  values.forEach((value, i) => {
    if (value === null) pen = false;
    else if (pen) ctx.lineTo(x(i), y(value));
    else {
      ctx.moveTo(x(i), y(value));
      pen = true;
    }
  });
  ctx.stroke();
}
