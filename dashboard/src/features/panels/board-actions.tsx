import { Save } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import { ApiError } from "@/api/client";
import { Button } from "@/components/ui/button";
import { Confirm, describe } from "@/components/ui/confirm";
import { Popover } from "@/components/ui/popover";
import { requests } from "@/data/source";
import { pathOf } from "@/lib/routes";
import { toast } from "@/stores/overlay";
import { useMay } from "@/stores/rights";
import { addressOf } from "@/stores/view";
import { type Board, forget, isChanged, openSaved } from "./boards";
import { ImportDialog } from "./import-dialog";
import { exportBoard, saveBoard } from "./save";
import { SaveDialog } from "./save-dialog";
import { ShareDialog } from "./share-dialog";

type Open = "save" | "import" | "share" | "delete" | "outdated" | null;

/** Save, share, export, import, delete. A save that came second says so and offers both ways out. */
export function BoardActions({ board }: { board: Board }) {
  const [open, setOpen] = useState<Open>(null);
  const maySave = useMay("PUT /dashboards/{dashboard_id}");
  const mayDelete = useMay("DELETE /dashboards/{dashboard_id}");
  const [, navigate] = useLocation();
  const close = () => setOpen(null);
  const go = (id?: string) => navigate(addressOf(pathOf("dashboards", id)));
  const save = async () => {
    if (board.id === null) return setOpen("save");
    try {
      const saved = await saveBoard(board);
      toast(`Saved as version ${saved.version}.`, "ok");
    } catch (cause) {
      if (cause instanceof ApiError && cause.code === "outdated") setOpen("outdated");
      else toast(describe(cause), "bad");
    }
  };
  const items: readonly (readonly [string, () => void, boolean])[] = [
    ["Save as…", () => setOpen("save"), maySave],
    ["Share link…", () => setOpen("share"), board.id !== null],
    ["Export JSON", () => exportBoard(board), true],
    ["Import JSON…", () => setOpen("import"), maySave],
    ["Give up changes", () => reload(board), isChanged(board)],
    ["Delete…", () => setOpen("delete"), mayDelete && board.id !== null],
  ];
  return (
    <>
      <Button needs="PUT /dashboards/{dashboard_id}" look={isChanged(board) ? "primary" : "plain"} onClick={save}>
        <Save size={13} /> Save
      </Button>
      <Popover label="More" align="right" className="flex w-44 flex-col py-1" trigger="More">
        {(shut) =>
          items
            .filter(([, , on]) => on)
            .map(([label, act]) => (
              <button
                key={label}
                type="button"
                className="h-8 px-3 text-left text-xs hover:bg-hover"
                onClick={() => {
                  shut();
                  act();
                }}
              >
                {label}
              </button>
            ))
        }
      </Popover>
      {open === "save" && <SaveDialog board={board} onSaved={(saved) => go(saved.id)} onClose={close} />}
      {open === "import" && <ImportDialog onImported={(saved) => go(saved.id)} onClose={close} />}
      {open === "share" && <ShareDialog onClose={close} />}
      {open === "delete" && (
        <Confirm
          title={`Delete ${board.name}?`}
          verb="Delete"
          onClose={close}
          onConfirm={() => remove(board).then(() => go())}
        >
          It is gone for everybody. Runs and their points stay.
        </Confirm>
      )}
      {open === "outdated" && (
        <Confirm
          title="Somebody saved it meanwhile"
          verb="Load theirs"
          look="primary"
          onClose={close}
          onConfirm={() => reload(board)}
        >
          Your changes are still here. Load the newer version and lose them, or close this and keep yours with “Save
          as…”.
        </Confirm>
      )}
    </>
  );
}

async function reload(board: Board): Promise<void> {
  if (board.id === null) forget("");
  else openSaved(await requests().savedDashboard(board.id), true);
}

async function remove(board: Board): Promise<void> {
  if (board.id === null) return;
  await requests().deleteDashboard(board.id, board.version);
  forget(board.id);
}
