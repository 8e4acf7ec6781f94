"""The twenty questions of docs/asking.md, as they stand there, against runs that this test makes itself and whose
answers it knows: in SQL on four roads, from Python, and by an assistant.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import strata
from strata.client.api import Api
from tests.support.cluster import Cluster
from tests.support.cluster import strata as command
from tests.support.pages import ROOT, Block, blocks
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow
STEPS = 50  # as the script below has it
_SWEEP = """
import strata

def log(run_id, losses, **about):
    run = strata.init(run_id=run_id, project="stories", **about)
    for step, loss in enumerate(losses):
        run.log({"loss": loss, **({"val/acc": 1 - loss} if step % 10 == 9 else {})}, step=step)
    return run

for lr in (0.1, 0.01, 0.001):
    for seed in (1, 2):
        losses = [1 / (1 + 10 * lr * step) + seed / 100 for step in range(50)]
        if (lr, seed) == (0.1, 2):
            losses[30:] = [float("nan")] * 20
        config = {"lr": lr, "seed": seed, "model": {"width": 64 * seed}}
        tags = ["ablation", "wide"] if seed == 2 else ["ablation"]
        run = log(f"lr{lr}-s{seed}", losses, group="sweep", tags=tags, config=config)
        run.summary["best_loss"] = losses[-1]
        assert run.finish()
losses = [1 / (1 + step) for step in range(50)]
losses[20] += 2
assert log("baseline", losses, config={"lr": 0.01}).finish()
log("broken", [3.0, 2.0], config={"lr": 9.0}).finish(exit_code=1, reason="CUDA out of memory")
"""
_TASK = """
import sys
import numpy as np
import strata
run = strata.init()
saves = run.checkpoints()
for step in range(1, 11):
    run.log({"task/loss": 10 / step}, step=step)
    if step % 5 == 0:
        saves.save({"w": np.ones(4)}, step)
sys.stderr.write("gradient overflow, scale halved\\n" * 2)
sys.stderr.flush()
raise ValueError("the tokenizer has no word for this")
"""


def loss(lr: float, seed: int, step: int) -> float:
    return 1 / (1 + 10 * lr * step) + seed / 100


LAST = STEPS - 1
IN_SQL: dict[int, list[list[Any]]] = {
    1: [["lr0.1-s1", round(loss(0.1, 1, LAST), 4), LAST]],
    2: [
        [0.1, round((loss(0.1, 1, LAST) + loss(0.1, 2, 29)) / 2, 4)],
        [0.01, round((loss(0.01, 1, LAST) + loss(0.01, 2, LAST)) / 2, 4)],
        [0.001, round((loss(0.001, 1, LAST) + loss(0.001, 2, LAST)) / 2, 4)],
    ],
    3: [["lr0.1-s2", 30, 20]],
    4: [["baseline", 2], ["lr0.01-s1", 11], ["lr0.01-s2", 11], ["lr0.1-s1", 2], ["lr0.1-s2", 2]],
    5: [["baseline", 20, round(2 + 1 / 21 - 1 / 20, 4)]],
    6: [
        ["lr0.001-s2", round(1 - loss(0.001, 2, LAST), 4)],
        ["lr0.01-s2", round(1 - loss(0.01, 2, LAST), 4)],
        ["lr0.1-s2", "NaN"],
    ],
    7: [[step, 0.01] for step in range(0, STEPS, 10)],
    8: [["broken", "CUDA out of memory"]],
    9: [[0.001, 2, 128], [0.1, 1, 64]],
    10: [["loss", 6 * STEPS], ["val/acc", 6 * STEPS // 10]],
    11: [[2, 2]],
    12: [
        ["baseline", round(1 / (1 + 44), 4)],
        *([f"lr{lr}-s{seed}", round(loss(lr, seed, 44), 4)] for lr in (0.001, 0.01) for seed in (1, 2)),
        ["lr0.1-s1", round(loss(0.1, 1, 44), 4)],
    ],
}
FROM_PYTHON: dict[int, Any] = {
    13: ["lr0.1-s1", "lr0.1-s2", "lr0.01-s1", "lr0.01-s2"],
    14: loss(0.1, 1, LAST),
    15: [1.0, 0.5, 0.33, 0.25],
    16: [5, 10],
    17: ["tokens"],
}


def _block(language: str) -> Block:
    (found,) = [
        one
        for one in blocks(ROOT / "docs" / "asking.md")
        if one.heading == "Twenty questions of a researcher" and one.language == language
    ]
    return found


def _numbered(language: str, mark: str) -> dict[int, str]:
    """Each question of a block, by its number; what is asked follows the line that says it in words."""
    parts = re.split(rf"^{mark} (\d+)\. .*\n", _block(language).code, flags=re.MULTILINE)[1:]
    return {int(number): asked.strip() for number, asked in zip(parts[::2], parts[1::2], strict=True)}


class Laboratory:
    """A cluster with the runs of the sweep and a task that has failed."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        environment = {**os.environ, "STRATA_DATA_DIR": str(cluster.folder)}
        subprocess.run([sys.executable, "-c", _SWEEP], env=environment, check=True, timeout=240)
        body = {"name": "tokens", "worker_count": 1, "max_restarts": 0, "entrypoint": [sys.executable, "-c", _TASK]}
        self.task: str = cluster.post("/api/tasks", body)["task_id"]
        eventually("its end", lambda: cluster.get(f"/api/tasks/{self.task}")["status"] == "failed", within_s=120)
        lines = "SELECT count() FROM logs WHERE message LIKE 'gradient%'"
        eventually("what it printed", lambda: self.sql(lines) == [[2]], within_s=120)
        self.api: Api = strata.Api(data_dir=cluster.folder)

    def sql(self, question: str) -> list[list[Any]]:
        found: list[list[Any]] = self.cluster.post("/api/sql", {"query": question})["rows"]
        return found


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    with Cluster(tmp_path_factory.mktemp("questions") / "data", "--slots", "1") as running:
        yield Laboratory(running.wait_for_store())


def test_there_are_twenty() -> None:
    asked = [*_numbered("sql", "--"), *_numbered("python", "#"), *(int(one.split(".")[0]) for one in _by_assistant())]
    assert asked == list(range(1, 21))


@pytest.mark.parametrize("number", IN_SQL)
def test_in_sql_by_rest_command_and_python(laboratory: Laboratory, number: int) -> None:
    question = _numbered("sql", "--")[number]
    assert laboratory.sql(question) == IN_SQL[number]
    done = command("sql", question, "--json", "--data-dir", str(laboratory.cluster.folder))
    assert [list(row.values()) for row in json.loads(done.stdout)] == IN_SQL[number], done.stderr
    assert [list(row.values()) for row in laboratory.api.sql(question)] == IN_SQL[number]


@pytest.mark.parametrize("number", FROM_PYTHON)
def test_from_python(laboratory: Laboratory, number: int) -> None:
    asked = _numbered("python", "#")[number]
    known = {"api": laboratory.api, "task": laboratory.task}
    answer = eval(asked, known)  # noqa: S307 - it is our own page
    assert answer == FROM_PYTHON[number], asked


def test_by_an_assistant(laboratory: Laboratory) -> None:
    told = asyncio.run(_assist(laboratory))
    runs, summary, verdict = told[: len(_by_assistant())]
    assert [run["run_id"] for run in runs] == ["lr0.1-s1", "lr0.1-s2", "lr0.01-s1"]
    assert (summary["loss.min"], summary["loss.max"], summary["loss.last"]) == (1 / STEPS, 2 + 1 / 21, 1 / STEPS)
    assert (verdict["kind"], verdict["rank"]) == ("exception", 0)
    assert "the tokenizer has no word for this" in verdict["sentence"]
    in_sql = told[len(_by_assistant()) :]
    assert [[list(row.values()) for row in found["rows"]] for found in in_sql] == list(IN_SQL.values())


def _by_assistant() -> dict[str, tuple[str, dict[str, Any]]]:
    found: dict[str, tuple[str, dict[str, Any]]] = json.loads(_block("json").code)
    return found


async def _assist(laboratory: Laboratory) -> list[Any]:
    calls = [*_by_assistant().values(), *(("sql", {"query": one}) for one in _numbered("sql", "--").values())]
    arguments = ["-m", "strata", "mcp", "--read-only", "--data-dir", str(laboratory.cluster.folder)]
    told = []
    async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
        for tool, given in calls:
            if "task_id" in given:
                given = {"task_id": laboratory.task}
            answer = await client.call_tool(tool, given)
            assert not answer.is_error, answer.content
            told.append(answer.structured_content.get("result", answer.structured_content))
    return told
