"""A researcher's questions from Python, from the command line and by an assistant, against a real cluster; what stops a
task is journaled with who asked."""

import asyncio
import csv
import io
import json
import math
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import strata
from strata.client.api import Api
from strata.errors import InvalidArgument, NotFound, StrataError
from tests.support.cluster import Cluster
from tests.support.cluster import strata as command
from tests.support.waiting import eventually

RUNS = {"wide": 4.0, "narrow": 2.0}
"""Each with its first loss."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("asking") / "data", "--slots", "1") as running:
        running.wait_for_store()
        for name, first in RUNS.items():
            points = [{"metric": "loss", "step": step, "value": first / (1 + step)} for step in range(5)]
            points += [{"metric": "other", "step": 0, "value": math.pi}]
            running.post(f"/api/runs/{name}/points", {"points": points})
        yield running


@pytest.fixture
def api(cluster: Cluster) -> Api:
    return strata.Api(data_dir=cluster.folder)


def test_runs_are_found_read_and_changed_from_python(api: Api) -> None:
    assert [run.id for run in api.runs("loss > 0", sort="loss.min")] == ["wide", "narrow"]
    assert [run.id for run in api.runs("loss.max > 3")] == ["wide"]
    run = api.run("narrow")
    assert run.summary["loss.min"] == 0.4
    history = run.history("loss")
    assert (history["step"], history["value"]) == ([0, 1, 2, 3, 4], [2 / (1 + step) for step in range(5)])
    assert set(history["metric"]) == {"loss"}
    assert len(run.history()) == 6
    with pytest.raises(NotFound, match="nope"):
        run.history("nope")
    run.update(tags=["paper"], notes="good")
    assert api.update(["wide", run], add_tags=["both"]) == 2
    assert {one.id: one.tags for one in api.runs("tag:both")} == {"narrow": ["paper", "both"], "wide": ["both"]}
    run.update(tags="alone")
    assert api.update([run], add_tags="whole", remove_tags="alone") == 1
    assert api.run("narrow").tags == ["whole"], "a text is one tag, as in strata.init"
    assert api.run("narrow").info["notes"] == "good"
    assert run.checkpoints() == []
    with pytest.raises(NotFound):
        api.run("nobody")


def test_odd_values_come_back_as_they_were_and_odd_questions_are_refused(cluster: Cluster, api: Api) -> None:
    odd = [float("nan"), float("inf"), float("-inf"), 5e-324, -0.0, 1e308]
    points: list[dict[str, Any]] = [
        {"metric": "a:b c", "step": step, "value": str(value) if value - value != 0 else value}
        for step, value in enumerate(odd)
    ]
    points += [{"metric": "far", "step": 2**53 - 1, "value": 1, "rank": 7, "device": 3, "host": "ü, '"}]
    cluster.post("/api/runs/odd/points", {"points": points})
    history = api.run("odd").history()
    assert history["metric"] == ["a:b c"] * len(odd) + ["far"]
    assert [str(value) for value in history["value"]] == [*map(str, odd), "1.0"]
    assert (history["step"][-1], history["rank"][-1], history["host"][-1]) == (2**53 - 1, 7, "ü, '")
    assert history["device"] == [None] * len(odd) + [3]
    half = "\ud800"
    for nobody in (half, 2**70, None, "", "x" * 5_000, "../info", "a/b", "\0"):
        with pytest.raises(StrataError):
            api.run(nobody)  # type: ignore[arg-type]  # as a script may
    for refused in (
        lambda: api.run("odd").history(half),
        lambda: api.runs(f"name ~ {half} and"),
        lambda: api.sql(half),
    ):
        with pytest.raises(StrataError):
            refused()
    with pytest.raises(StrataError):
        api.update(["odd"], add_tags=[half])
    assert api.runs("id:odd", limit=2**70)[0].id == "odd"
    with pytest.raises(InvalidArgument, match="half a character"):
        api.sql(f"SELECT '{half}' AS a")


def test_questions_in_sql(cluster: Cluster, api: Api) -> None:
    question = "SELECT run_id, max(value) AS top FROM metric_points WHERE metric = 'loss' GROUP BY run_id ORDER BY top"
    assert api.sql(question).rows() == [{"run_id": "narrow", "top": 2.0}, {"run_id": "wide", "top": 4.0}]
    assert len(api.sql("SELECT 1 AS a WHERE 0")) == 0
    flags = ("--data-dir", str(cluster.folder))
    printed = command("sql", question, "--csv", *flags).stdout
    assert list(csv.reader(io.StringIO(printed))) == [["run_id", "top"], ["narrow", "2.0"], ["wide", "4.0"]]
    assert json.loads(command("sql", question, "--json", *flags).stdout)[0]["run_id"] == "narrow"
    assert "wide" in command("sql", question, *flags).stdout
    refused = command("sql", "SELECT file('/etc/passwd')", *flags)
    assert refused.returncode != 0
    assert "the function file may not be called here" in refused.stderr


def test_an_assistant_asks_and_acts(cluster: Cluster) -> None:
    body = {"name": "sleeper", "worker_count": 1, "entrypoint": [sys.executable, "-c", "import time; time.sleep(600)"]}
    task_id = cluster.post("/api/tasks", body)["task_id"]
    told = asyncio.run(ask(cluster, task_id))
    assert told["tools"] >= {"find_runs", "sql", "metric_history", "stop_task"}
    assert {run["run_id"] for run in told["runs"]} == set(RUNS)
    assert told["history"]["step"] == [0, 2, 4]
    assert told["sql"]["rows"] == [{"n": 2}]
    assert "may not be called here" in told["refused"]
    stopped = eventually("the stop", lambda: found_reason(cluster, task_id))
    assert stopped == "stopped by the owner through strata mcp"


def found_reason(cluster: Cluster, task_id: str) -> str | None:
    reason: str | None = cluster.get(f"/api/tasks/{task_id}")["reason"]
    return reason if reason and "stopped by" in reason else None


async def ask(cluster: Cluster, task_id: str) -> dict[str, Any]:
    arguments = ["-m", "strata", "mcp", "--data-dir", str(cluster.folder)]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:

        async def call(tool: str, **given: Any) -> Any:
            answer = await client.call_tool(tool, given)
            if answer.is_error:
                return getattr(answer.content[0], "text", "")
            found = answer.structured_content
            return found.get("result", found)

        return {
            "tools": {tool.name for tool in (await client.list_tools()).tools},
            "runs": await call("find_runs", filter="loss > 0"),
            "history": await call("metric_history", run_id="wide", metric="loss", rows=3),
            "sql": await call("sql", query="SELECT uniq(run_id) AS n FROM metric_points WHERE metric = 'loss'"),
            "refused": await call("sql", query="SELECT file('/etc/passwd')"),
            "stopped": await call("stop_task", task_id=task_id),
        }
