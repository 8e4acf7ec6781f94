import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { Button } from "@/components/ui/button";
import { useView } from "@/stores/view";
import { LogRow } from "./log-row";
import type { LogView } from "./log-view";

const ROW = 20;

interface Props {
  view: LogView;
  version: number;
  follow: boolean;
  onFollow(follow: boolean): void;
  waiting: number;
  /** Set by the histogram: scroll to this row. */
  goto: { index: number } | null;
}

/** About sixty rows in the DOM, whatever the log holds. Scrolling up stops the tail; the button brings it back. */
export function LogList({ view, version, follow, onFollow, waiting, goto }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const at = useView((state) => state.at);
  const count = view.length;
  const rows = useVirtualizer({ count, getScrollElement: () => box.current, estimateSize: () => ROW, overscan: 12 });

  useEffect(() => {
    if (follow && count > 0 && version >= 0) rows.scrollToIndex(count - 1, { align: "end" });
  }, [follow, count, version, rows]);
  useEffect(() => {
    if (goto) rows.scrollToIndex(goto.index, { align: "center" });
  }, [goto, rows]);
  const linked = useRef("");
  useEffect(() => {
    if (!at || linked.current === at || count === 0) return;
    const index = view.indexOf(at);
    if (index < 0) return;
    linked.current = at;
    onFollow(false);
    rows.scrollToIndex(index, { align: "center" });
  }, [at, count, view, rows, onFollow]);

  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    const bottom = element.scrollHeight - element.scrollTop - element.clientHeight < ROW * 2;
    if (!bottom && follow) onFollow(false);
    if (bottom && !follow && !at) onFollow(true);
  };

  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={box}
        role="log"
        aria-label="Log lines"
        aria-live="off"
        className="h-full overflow-y-auto bg-sunken"
        onWheel={onScroll}
        onTouchMove={onScroll}
        onKeyUp={onScroll}
      >
        <div style={{ height: rows.getTotalSize(), position: "relative" }}>
          {rows.getVirtualItems().map((item) => {
            const line = view.at(item.index);
            return (
              line && (
                <div key={item.key} className="absolute inset-x-0" style={{ transform: `translateY(${item.start}px)` }}>
                  <LogRow
                    line={line}
                    selected={line.id === at}
                    onSelect={() => useView.getState().set({ at: line.id })}
                  />
                </div>
              )
            );
          })}
        </div>
      </div>
      {!follow && (
        <Button look="primary" className="absolute right-5 bottom-3 shadow-(--shadow)" onClick={() => onFollow(true)}>
          {waiting > 0 ? `${waiting.toLocaleString("en-US")} new lines` : "Follow the tail"} ↓
        </Button>
      )}
    </div>
  );
}
