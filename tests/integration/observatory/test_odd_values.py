"""Odd values through every door: each is accepted and shown, or refused in words; then, and after a restart of all,
every list works. `--odd-values 1000` takes the whole table.
"""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.types.shown import MARK
from tests.support.doors import Doors
from tests.support.nodes import Nodes, wait_for
from tests.support.odd_values import ODD, Odd

# These broke something once; the others of a short run are spread over the table.
_ALWAYS = ("2^70+0", "lone high surrogate", "300 levels", "NUL", "nan", "bad s3", "azure", "tilde", "10 MB")


def chosen(count: int) -> list[Odd]:
    first = [odd for odd in ODD if odd.name in _ALWAYS]
    rest = [odd for odd in ODD if odd.name not in _ALWAYS]
    more = max(0, min(count - len(first), len(rest)))
    return first + [rest[place * len(rest) // more] for place in range(more)]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path) as running:
        running.start("coordinator", "observatory")
        ready(running)
        yield running


def ready(nodes: Nodes) -> None:
    wait_for(lambda: (nodes.get("/api/status") or {}).get("metric_store_ready"), 90, "the metric store")
    wait_for(lambda: nodes.get("/api/status")["connected"], 60, "the coordinator")


def restart(nodes: Nodes) -> None:
    for name in ("observatory", "coordinator"):
        nodes.kill(name)
    nodes.start("coordinator", "observatory")
    ready(nodes)


def submit(channel: grpc.Channel, name: str, config_json: str) -> str:
    """A task that waits for slots."""
    data = pb.DatasetInfo(dataset_id="base", path="p", format="csv", total_samples=10, shard_size=5)
    CoordinatorStub(channel).RegisterDataset(data, timeout=60)
    spec = ct.TaskSpec(name=name, type="training", dataset_id="base", worker_count=1, config_json=config_json)
    return str(ControlStub(channel).SubmitTask(spec, timeout=60).task_id)


def state_event(http: str) -> str:
    """The first state that the stream sends of its own accord."""
    with httpx.stream("GET", f"{http}/stream", params={"topics": "state"}, timeout=60) as answer:
        lines = answer.iter_lines()
        return next(line for line in lines if line.startswith("data:") and "coordinator" in line)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_every_door_takes_or_refuses_and_everything_works_after_it(nodes: Nodes, pytestconfig: pytest.Config) -> None:
    values = chosen(pytestconfig.getoption("--odd-values"))
    with Doors(nodes.http, nodes.address, nodes.telemetry).prepare() as doors:
        for odd in values:
            doors.push(odd)
        doors.lists()
        assert doors.broken == []
        assert doors.accepted > 10 * len(values)
        assert doors.refused > 10 * len(values)
        assert state_event(nodes.http)
    restart(nodes)
    with Doors(nodes.http, nodes.address, nodes.telemetry) as doors:
        doors.lists()
        assert doors.broken == []
        assert state_event(nodes.http)


def test_a_config_is_shown_exactly_and_given_to_the_ranks_as_it_was(nodes: Nodes) -> None:
    config = {"seed": 2**70, "entropy": [-(2**64), 2**53 + 1], "lr": float("nan"), "ok": 2**53 - 1}
    with grpc.insecure_channel(nodes.address) as channel:
        task_id = submit(channel, "big", json.dumps(config))
        found = json.loads(ControlStub(channel).GetTask(ct.TaskRef(task_id=task_id), timeout=60).record_json)
    shown = wait_for(lambda: nodes.get(f"/api/tasks/{task_id}"), 30, "the task")["config"]
    assert shown == {
        "seed": "1180591620717411303424",
        "entropy": ["-18446744073709551616", "9007199254740993"],
        "lr": "NaN",
        "ok": 9007199254740991,
    }
    assert found["spec"]["config"]["seed"] == 2**70


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('{"a": [{"b": "x\\udc80"}]}', "config.a[0].b holds half a character (U+DC80"),
        ('{"x": ' + "[" * 65 + "]" * 65 + "}", "config is nested deeper than 64 levels"),
    ],
)
def test_a_config_that_cannot_be_shown_is_refused_with_its_place(nodes: Nodes, config: str, words: str) -> None:
    channel = grpc.insecure_channel(nodes.address)
    with pytest.raises(grpc.RpcError) as refused:
        submit(channel, "odd", config)
    channel.close()
    status: Any = refused.value
    assert status.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert words in status.details()


@pytest.mark.slow
def test_a_journal_of_an_earlier_release_with_such_values_comes_up(tmp_path: Path) -> None:
    """Submitted without harm, then put into the journal by hand, as the release before let them in."""
    with Nodes(tmp_path) as nodes:
        nodes.start("coordinator")
        with grpc.insecure_channel(nodes.address) as channel:
            for name in ("bigint", "surrogate", "deep", "fine"):
                submit(channel, name, '{"x": "HERE"}')
            CoordinatorStub(channel).RegisterWorker(pb.WorkerInfo(worker_id="w1"), timeout=60)
            for number in range(3):
                info = pb.CheckpointInfo(worker_id="w1", checkpoint_id=f"c{number}", step=number)
                info.storage_path = f"P{number}"
                CoordinatorStub(channel).NotifyCheckpoint(info, timeout=60)
        nodes.kill("coordinator")
        poison(
            nodes.data_dir,
            {
                "bigint": str(2**70),
                "surrogate": '"a\\ud800"',
                "deep": "[" * 300 + "]" * 300,
                "P0": "a\x00b",
                "P1": "~nouser/x",
                "P2": "s3://[x",
            },
        )
        nodes.start("coordinator", "observatory")
        ready(nodes)
        tasks = {task["name"]: task["config"]["x"] for task in nodes.get("/api/tasks")}
        assert tasks["fine"] == "HERE"
        assert tasks["bigint"] == str(2**70)
        assert tasks["surrogate"] == MARK + "a\\ud800"
        assert str(tasks["deep"]).startswith("[[[")
        assert len(nodes.get("/api/checkpoints")) == 3
        wait_for(lambda: _aside(nodes, "pins") == 3, 60, "three paths set aside")
        assert state_event(nodes.http)
        with Doors(nodes.http, nodes.address, nodes.telemetry).prepare() as doors:
            doors.lists()
            assert doors.broken == []


def _aside(nodes: Nodes, part: str) -> int:
    return sum(one["count"] for one in nodes.get("/api/status")["set_aside"] if one["part"] == part)


def poison(data_dir: Path, values: dict[str, str]) -> None:
    """Rewrites bodies of events: task `name` gets its config, a path its replacement."""
    [journal] = data_dir.rglob("journal.db")
    with sqlite3.connect(journal) as database:
        rows = database.execute("SELECT seq, body FROM records").fetchall()
        for seq, body in rows:
            event = json.loads(body)
            if event.get("name") in values:
                event["config_json"] = event["config_json"].replace('"HERE"', values[event["name"]])
            if event.get("storage_path") in values:
                event["storage_path"] = values[event["storage_path"]]
            database.execute("UPDATE records SET body = ? WHERE seq = ?", (json.dumps(event).encode(), seq))
    database.close()
