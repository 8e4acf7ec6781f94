"""An agent is killed while it holds a beat that it has not passed on: what the rank said is heard all the same, by its
straight road, and nobody takes the rank for dead. Real processes; the rank is one of this process.
"""

import asyncio
import fcntl
import json
import struct
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from strata.client.tie import Tie
from strata.errors import StrataError
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.types.workers import MemberState
from tests.support.nodes import Nodes, wait_for
from tests.support.tied_rank import TiedRank

_NAME = "w"
_BEFORE, _LOST = 10, 11


class _Rank(TiedRank):
    """Says at which step it is."""

    def __init__(self) -> None:
        super().__init__(_NAME, step=_BEFORE)
        self.said = 0

    def beat(self) -> pb.HeartbeatRequest:
        self.said = self.step
        return super().beat()

    def refused(self, error: StrataError) -> None:
        raise error


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path) as nodes:
        nodes.start()
        yield nodes


def _register(nodes: Nodes) -> None:
    agent_id = json.loads((nodes.data_dir / "agent.json").read_text())["agent_id"]
    info = pb.WorkerInfo(worker_id=_NAME, task_id="t", incarnation="i", agent_id=agent_id)
    nodes.channel().stub(CoordinatorStub).RegisterWorker(info)


def _seen(nodes: Nodes) -> ct.WorkerVitals:
    stream = nodes.channel().stub(ControlStub).WatchState(ct.WatchRequest(), timeout=30)
    vitals = next(update.vitals for update in stream if update.WhichOneof("update") == "vitals")
    stream.cancel()
    return next(item for item in vitals.workers if item.worker_id == _NAME)


def _was_read(tie: Tie) -> bool:
    """Whether the agent has taken what this rank last said."""
    assert tie.fileno is not None
    answer = fcntl.ioctl(tie.fileno, termios.TIOCOUTQ, b"\0" * 4)
    return struct.unpack("i", answer) == (0,)


async def _until(nodes: Nodes, step: int) -> None:
    await asyncio.to_thread(wait_for, lambda: _seen(nodes).status.current_step == step, 60, f"step {step}")


async def test_a_beat_that_dies_with_the_agent_is_said_by_the_straight_road(nodes: Nodes) -> None:
    await asyncio.to_thread(_register, nodes)
    rank = _Rank()
    socket = nodes.data_dir / "agent" / "ranks.sock"
    tie = Tie(rank, (f"unix:{socket}", nodes.address), beat_s=600.0)  # it beats when it is told to
    running = asyncio.create_task(tie.run())
    async with asyncio.timeout(60):
        assert await tie.beat()
        await _until(nodes, _BEFORE)
        rank.step = _LOST  # no more than that is new, so the agent keeps it for a moment
        tie.beat_soon()
        while rank.said != _LOST:  # noqa: ASYNC110  # nobody has an event for it, nor for the next
            await asyncio.sleep(0)
        for _ in range(3):  # it leaves at the end of this turn of the loop
            await asyncio.sleep(0)
        while not _was_read(tie):  # noqa: ASYNC110
            await asyncio.sleep(0)
        nodes.kill("agent")
        await _until(nodes, _LOST)
        assert await tie.beat()
    seen = await asyncio.to_thread(_seen, nodes)
    assert seen.state == MemberState.READY.value
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
