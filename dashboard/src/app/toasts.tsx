import { X } from "lucide-react";
import { Button } from "@/components/ui/button";
import { PageLink } from "@/components/ui/page-link";
import { cx } from "@/lib/cx";
import { dropNotice, useOverlay } from "@/stores/overlay";

const TONES = { info: "border-line-strong", ok: "border-ok", bad: "border-bad" };
const BOX = "rounded-md border border-l-4 bg-surface px-3 py-2 text-xs leading-5 shadow-(--shadow)";

/** At most one line of alerts and the answers to what was clicked; both leave by themselves. */
export function Toasts() {
  const toasts = useOverlay((state) => state.toasts);
  const notice = useOverlay((state) => state.notice);
  return (
    <div
      aria-live="polite"
      className="pointer-events-none fixed right-4 bottom-4 z-50 flex w-80 max-w-[calc(100vw-32px)] flex-col gap-2"
    >
      {notice && (
        <div
          data-testid="alert-notice"
          className={cx("pointer-events-auto flex items-start gap-2", BOX, TONES[notice.tone])}
        >
          <PageLink page="alerts" className="line-clamp-2 min-w-0 flex-1 hover:underline" onClick={dropNotice}>
            {notice.text}
            {notice.count > 1 && <span className="text-muted"> and {notice.count - 1} more</span>}
          </PageLink>
          <Button look="quiet" icon aria-label="Dismiss" className="-my-1 -mr-2" onClick={dropNotice}>
            <X size={13} />
          </Button>
        </div>
      )}
      {toasts.map((toast) => (
        <p key={toast.id} className={cx(BOX, TONES[toast.tone])}>
          {toast.text}
        </p>
      ))}
    </div>
  );
}
