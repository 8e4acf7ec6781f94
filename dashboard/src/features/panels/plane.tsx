import type { ReactNode } from "react";
import { useSize } from "@/hooks/size";
import type { Axis } from "./axis";

interface Side {
  axis: Axis;
  title: string;
}

interface Props {
  label: string;
  x: Side;
  y: Side;
  note: string;
  children(scale: { x(share: number): number; y(share: number): number }): ReactNode;
}

const [LEFT, RIGHT, TOP, BOTTOM] = [52, 12, 8, 36];

/** Two axes and what lies between them. */
export function Plane({ label, x, y, note, children }: Props) {
  const [box, { width, height }] = useSize<HTMLDivElement>();
  const scale = {
    x: (share: number) => LEFT + share * (width - LEFT - RIGHT),
    y: (share: number) => height - BOTTOM - share * (height - TOP - BOTTOM),
  };
  return (
    <div ref={box} className="relative h-full min-h-0 w-full">
      {width > 0 && (
        <svg role="img" aria-label={label} width={width} height={height} className="absolute inset-0 text-2xs">
          {x.axis.ticks.map(({ at, label: text }) => (
            <g key={`x ${text} ${at}`}>
              <line x1={scale.x(at)} x2={scale.x(at)} y1={TOP} y2={height - BOTTOM} stroke="var(--line)" />
              <text x={scale.x(at)} y={height - BOTTOM + 14} textAnchor="middle" fill="var(--faint)">
                {short(text)}
              </text>
            </g>
          ))}
          {y.axis.ticks.map(({ at, label: text }) => (
            <g key={`y ${text} ${at}`}>
              <line x1={LEFT} x2={width - RIGHT} y1={scale.y(at)} y2={scale.y(at)} stroke="var(--line)" />
              <text x={LEFT - 6} y={scale.y(at) + 4} textAnchor="end" fill="var(--faint)">
                {short(text)}
              </text>
            </g>
          ))}
          <text x={width - RIGHT} y={height - 6} textAnchor="end" fill="var(--muted)">
            {x.title}
          </text>
          <text x={LEFT} y={height - 6} fill="var(--muted)">
            ↑ {y.title}
            {note && ` · ${note}`}
          </text>
          {children(scale)}
        </svg>
      )}
    </div>
  );
}

function short(text: string): string {
  return text.length > 12 ? `${text.slice(0, 11)}…` : text;
}
