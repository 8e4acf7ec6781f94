import { useCatalog } from "@/stores/catalog";
import { useView } from "@/stores/view";
import { Button } from "./button";
import { Code, Empty } from "./empty";
import { Panel } from "./panel";

/** The very first screen of a new user: what to type, or a look at the demo. */
export function NoRuns() {
  const loaded = useCatalog((state) => state.loaded);
  return (
    <Panel>
      <Empty
        title={loaded ? "No run yet" : "Runs are not known yet"}
        action={<Button onClick={() => useView.getState().set({ demo: true, runs: null })}>Look at the demo</Button>}
      >
        {!loaded && "The server has not told them. "}
        Log a metric from any Python script and its run appears here within a second.
        <Code>
          {
            'import strata\n\nrun = strata.init(name="first")\nfor step in range(100):\n    run.log({"loss": 1 / (step + 1)}, step=step)'
          }
        </Code>
      </Empty>
    </Panel>
  );
}
