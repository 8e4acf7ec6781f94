"""A rank's tie leads by its agent, and straight to the coordinator while the agent is away: whatever is killed while
ranks wait at a barrier, nobody's arrival is lost and everybody is released once. Real processes.
"""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for

_RANKS = 3
_MEET = """
import pathlib, time, strata
run = strata.init()
for step, name in enumerate(("calm", "agent", "back", "coordinator")):
    gate = pathlib.Path(run.config["folder"]) / name
    print(f"at {name}", flush=True)
    while run.rank == 0 and not gate.exists():
        time.sleep(0.01)
    result = run.barrier("meet", step=step)
    print(f"{name}: {result.arrival_order} of {result.participants}", flush=True)
run.finish()
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path, slots=_RANKS) as nodes:
        nodes.start()
        yield nodes


def _by_agent(nodes: Nodes) -> int:
    """How many ranks speak to the agent: its socket's connections without the one that listens."""
    opened = psutil.Process(nodes.pid("agent")).net_connections(kind="unix")
    return sum(str(item.laddr).endswith("/ranks.sock") for item in opened) - 1


def _arrived(nodes: Nodes) -> list[int]:
    """Of every barrier that waits, how many have come."""
    stream = nodes.channel().stub(ControlStub).WatchState(ct.WatchRequest(), timeout=30)
    vitals = next(update.vitals for update in stream if update.WhichOneof("update") == "vitals")
    stream.cancel()
    return [item.arrived for item in vitals.barriers]


def test_nobody_is_lost_at_a_barrier_whatever_is_killed(nodes: Nodes, tmp_path: Path) -> None:
    script = tmp_path / "meet.py"
    script.write_text(_MEET)
    config = {"folder": str(tmp_path)}
    task_id = nodes.submit(name="meet", worker_count=_RANKS, entrypoint=("python", str(script)), config=config)

    def waiting(name: str) -> None:
        """Until all have come so far; those that need no gate then are at the barrier, or on their way."""
        wait_for(
            lambda: all(f"at {name}" in nodes.output(task_id, 1, rank) for rank in range(_RANKS)), 60, f"all at {name}"
        )
        wait_for(lambda: _arrived(nodes) == [_RANKS - 1], 60, "two that wait")

    def released(name: str) -> None:
        (tmp_path / name).touch()
        said = [f"{name}: {place} of {_RANKS}" for place in range(1, _RANKS + 1)]
        wait_for(
            lambda: (
                sorted(
                    line
                    for rank in range(_RANKS)
                    for line in nodes.output(task_id, 1, rank).splitlines()
                    if line.startswith(f"{name}:")
                )
                == said
            ),
            60,
            f"release of {name}",
        )

    waiting("calm")
    assert _by_agent(nodes) == _RANKS
    released("calm")
    waiting("agent")
    nodes.kill("agent")
    released("agent")
    nodes.start("agent")
    wait_for(lambda: _by_agent(nodes) == _RANKS, 60, "all ranks back at their agent")
    waiting("back")
    released("back")
    waiting("coordinator")
    nodes.kill("coordinator")
    nodes.start("coordinator")
    released("coordinator")
    assert nodes.wait_task(task_id).status is TaskStatus.COMPLETED
    assert nodes.task(task_id).attempt == 1
