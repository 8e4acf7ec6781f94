import { RunList } from "./run-list";
import { RunPage } from "./run-page";

export default function RunsPage({ id }: { id: string | null }) {
  return id === null ? <RunList /> : <RunPage id={id} />;
}
