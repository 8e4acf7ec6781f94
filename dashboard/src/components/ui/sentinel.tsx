import { useEffect, useRef } from "react";

/** Stands behind what is mounted of a long list and tells when more of it is about to be seen. */
export function Sentinel({ onSeen }: { onSeen(): void }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && onSeen(), { rootMargin: "600px" });
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  });
  return <div ref={box} className="h-8" />;
}
