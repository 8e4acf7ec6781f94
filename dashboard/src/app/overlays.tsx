import { lazy, Suspense } from "react";
import { useOverlay } from "@/stores/overlay";
import { Help } from "./help";
import { Palette } from "./palette";
import { Toasts } from "./toasts";

const IncidentPanel = lazy(() => import("@/features/incident/incident-panel"));
const ForkDialog = lazy(() => import("@/features/fork/fork-dialog"));

export function Overlays() {
  const { search, help, incident, fork } = useOverlay();
  return (
    <>
      {search && <Palette />}
      {help && <Help />}
      {incident && (
        <Suspense fallback={null}>
          <IncidentPanel key={`${incident.run_id}/${incident.step}/${incident.time}`} incident={incident} />
        </Suspense>
      )}
      {fork && (
        <Suspense fallback={null}>
          <ForkDialog place={fork} />
        </Suspense>
      )}
      <Toasts />
    </>
  );
}
