import { Plus, RotateCcw } from "lucide-react";
import { BaselinePicker, GroupPicker } from "@/components/metric/compare-pickers";
import { GroupLegend } from "@/components/metric/group-legend";
import { Button } from "@/components/ui/button";
import { describe } from "@/components/ui/confirm";
import { Empty, Skeleton } from "@/components/ui/empty";
import { NoRuns } from "@/components/ui/no-runs";
import { Page } from "@/components/ui/page";
import { PageLink } from "@/components/ui/page-link";
import { useCatalog } from "@/stores/catalog";
import { useMay } from "@/stores/rights";
import { AddPanel } from "./add-panel";
import { BoardActions } from "./board-actions";
import { BoardPicker } from "./board-picker";
import { BoardSection } from "./board-section";
import { type Board, edit, isChanged, useBoards } from "./boards";
import { GoneRuns } from "./gone-runs";
import { addSection, panelsOf } from "./layout";
import { PanelDialog } from "./panel-dialog";
import { isGone, useBoard } from "./use-board";

export default function DashboardsPage({ id }: { id: string | null }) {
  const { board, error } = useBoard(id);
  const { runs, loaded } = useCatalog();
  const maySave = useMay("PUT /dashboards/{dashboard_id}");
  return (
    <Page
      title={id === null ? "Dashboards" : (board?.name ?? "Dashboard")}
      note={board && noteOf(board, maySave)}
      actions={
        <>
          <BoardPicker current={id} />
          {board && <BoardActions board={board} />}
        </>
      }
    >
      {board ? (
        runs.length === 0 && id === null ? (
          <NoRuns />
        ) : (
          <BoardView board={board} />
        )
      ) : error && id !== null ? (
        <Empty
          tone="bad"
          title={isGone(error) ? "There is no such dashboard" : "The dashboard cannot be read"}
          action={
            <PageLink page="dashboards" className="font-medium text-accent">
              To the default dashboard
            </PageLink>
          }
        >
          {isGone(error) ? "It was deleted, or the link is not whole." : describe(error)}
        </Empty>
      ) : loaded && runs.length === 0 ? (
        <NoRuns />
      ) : (
        <Skeleton rows={10} />
      )}
    </Page>
  );
}

function noteOf(board: Board, maySave: boolean): string {
  const count = panelsOf(board.layout).length;
  const changed = maySave ? "not saved yet" : "changed in this browser only";
  const words = [board.id === null ? "made from the metrics of the runs on show" : board.project, `${count} panels`];
  return [...words, isChanged(board) && changed].filter(Boolean).join(" · ");
}

function BoardView({ board }: { board: Board }) {
  const editing = useBoards((state) => state.editing);
  const zoomed = useBoards((state) => Object.keys(state.zooms).length > 0);
  const { sections } = board.layout;
  const edited = panelsOf(board.layout).find((panel) => panel.id === editing);
  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        <AddPanel />
        <Button onClick={() => edit(addSection)}>
          <Plus size={13} /> Section
        </Button>
        <GroupPicker />
        <BaselinePicker />
        {zoomed && (
          <Button onClick={() => useBoards.setState({ zooms: {} })}>
            <RotateCcw size={13} /> Reset zoom
          </Button>
        )}
      </div>
      <GoneRuns layout={board.layout} />
      <GroupLegend />
      {sections.length === 0 && (
        <Empty title="No panels yet">Add a panel: lines of metrics, a scatter of runs, a figure, or words.</Empty>
      )}
      {sections.map((section, place) => (
        <BoardSection
          // biome-ignore lint/suspicious/noArrayIndexKey: a section is its place; its title may be typed just now
          key={place}
          section={section}
          place={place}
          removable={sections.length > 1 || section.panels.length === 0}
        />
      ))}
      {edited && <PanelDialog key={edited.id} panel={edited} />}
    </>
  );
}
