import { cx } from "@/lib/cx";
import { useOverlay } from "@/stores/overlay";

const TONES = { info: "border-line-strong", ok: "border-ok", bad: "border-bad" };

export function Toasts() {
  const toasts = useOverlay((state) => state.toasts);
  return (
    <div
      aria-live="polite"
      className="pointer-events-none fixed right-4 bottom-4 z-50 flex w-80 max-w-[calc(100vw-32px)] flex-col gap-2"
    >
      {toasts.map((toast) => (
        <p
          key={toast.id}
          className={cx(
            "rounded-md border border-l-4 bg-surface px-3 py-2 text-xs leading-5 shadow-(--shadow)",
            TONES[toast.tone],
          )}
        >
          {toast.text}
        </p>
      ))}
    </div>
  );
}
