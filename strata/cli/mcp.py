"""`strata mcp`: the questions and acts of `strata.Api` as tools of the Model Context Protocol, over stdin and stdout.

It has the rights of its token and no others; what it changes is journaled with its name. The one file that imports mcp.
"""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from strata import __version__
from strata.cli.options import DataDir, reach
from strata.client.api import Api
from strata.client.rest import Rest
from strata.errors import MissingExtra, StrataError

__all__ = ["add_to"]

_INSTRUCTIONS = """Training runs of a Strata cluster. find_runs takes filters such as `lr > 1e-4 and tag:ablation and
state:failed`, with loss.min, loss.max and loss.last for metrics; sql takes one ClickHouse SELECT over metric_points
(event_time, run_id, host, rank, device, step, metric, value), runs (run_id, name, project, group, tags, status,
config_json, summary_json, latest_step, started_at) and logs (event_time, level, message, run_id, task_id, rank)."""
_MAX_ROWS = 500


def add_to(app: typer.Typer) -> None:
    app.command("mcp")(serve)


def serve(
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no tool that changes anything.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Serve assistants by the Model Context Protocol on stdin and stdout, with the rights of the token found here."""
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        raise MissingExtra("mcp", "mcp") from None

    def told(tool: Callable[..., Any]) -> Callable[..., Any]:
        """An error of ours is an answer that the assistant can read."""

        @wraps(tool)
        def wrapped(*given: Any, **named: Any) -> Any:
            try:
                return tool(*given, **named)
            except StrataError as error:
                raise ToolError(f"{error.message} {error.hint}".strip()) from None

        return wrapped

    tools = Tools(Api(rest=Rest(reach(data_dir=data_dir), client="strata mcp")))
    server: Any = MCPServer("strata", version=__version__, instructions=_INSTRUCTIONS, log_level="ERROR")
    for tool in (*tools.questions, *(() if read_only else tools.acts)):
        server.add_tool(told(tool))
    server.run("stdio")


class Tools:
    """Each method is a tool: its docstring is what the assistant reads."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.questions: tuple[Callable[..., Any], ...] = (
            self.find_runs,
            self.run_summary,
            self.metric_history,
            self.sql,
            self.list_tasks,
            self.why_task,
            self.list_checkpoints,
        )
        self.acts: tuple[Callable[..., Any], ...] = (self.tag_runs, self.stop_task, self.resume_task)

    def find_runs(
        self,
        filter: str = "",  # noqa: A002 - the language's word
        sort: str = "",
        limit: int = 50,
        descending: bool = True,
    ) -> list[dict[str, Any]]:
        """Find runs. sort: `started`, `loss.min`, `config.lr`; a falling order unless descending is false."""
        found = self._api.runs(filter, sort=sort, descending=descending, limit=limit)
        kept = ("run_id", "name", "project", "group", "tags", "state", "reason", "latest_step", "config", "task_id")
        return [{name: run.info[name] for name in kept} for run in found]

    def run_summary(self, run_id: str) -> dict[str, Any]:
        """Last, lowest and highest value of every metric of a run, and what its script set."""
        return self._api.run(run_id).summary

    def metric_history(self, run_id: str, metric: str, rows: int = 200) -> dict[str, Any]:
        """Points of one metric of a run, thinned evenly to `rows`, with how many there are."""
        frame = self._api.run(run_id).history(metric)
        every = max(1, -(-len(frame) // min(max(rows, 1), _MAX_ROWS)))
        return {"num_points": len(frame), **{name: frame[name][::every] for name in ("rank", "step", "value")}}

    def sql(self, query: str) -> dict[str, Any]:
        """Ask metric_points, runs and logs by one ClickHouse SELECT; the first 500 rows."""
        frame = self._api.sql(query)
        return {"num_rows": len(frame), "rows": frame.rows()[:_MAX_ROWS]}

    def list_tasks(self) -> list[dict[str, Any]]:
        """Tasks with their state and its reason."""
        kept = ("id", "name", "status", "reason", "progress", "attempt", "worker_ids", "dataset_id")
        return [{name: task.get(name) for name in kept} for task in self._api.tasks()]

    def why_task(self, task_id: str) -> dict[str, Any]:
        """Why a task failed, restarted or stands still: first cause, rank, seconds lost, advice, evidence."""
        return self._api.why(task_id)

    def list_checkpoints(self, run_id: str) -> list[dict[str, Any]]:
        """Checkpoints of a run."""
        return self._api.run(run_id).checkpoints()

    def tag_runs(self, run_ids: list[str], add: list[str] | None = None, remove: list[str] | None = None) -> str:
        """Put tags on runs, or take them away."""
        return f"{self._api.update(run_ids, add_tags=add or (), remove_tags=remove or ())} runs changed"

    def stop_task(self, task_id: str) -> str:
        """Stop a task; its ranks get time to save. Ask the user first."""
        self._api.stop(task_id)
        return f"stopping {task_id}"

    def resume_task(self, task_id: str) -> str:
        """Put a stopped or failed task back into the queue, to go on from its last good checkpoint."""
        return f"{task_id} goes on from step {self._api.resume(task_id)}"
