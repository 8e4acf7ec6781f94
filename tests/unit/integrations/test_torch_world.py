"""torch in world after world: what is kept of models and optimizers, and the end of a collective that waits for the
dead. Needs torch.
"""

import subprocess
import sys
import textwrap
from typing import Any

import pytest

from tests.support.ports import free_ports

torch = pytest.importorskip("torch")

from strata.checkpoint.parcel import pack, unpack  # noqa: E402  # only where torch is
from strata.integrations.torch_world import TorchRandom, TorchWorld  # noqa: E402  # as above
from strata.worker.elastic.memory import NOTHING, Memory  # noqa: E402  # as above

pytestmark = pytest.mark.torch


def _model() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))


def _train(model: Any, optimizer: Any, *, step: bool = True) -> None:
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    if step:
        optimizer.step()


def _same(one: Any, other: Any) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def _memory(world: TorchWorld, **parts: object) -> Memory:
    memory = Memory(world.keeper_of, {"torch": TorchRandom()})
    memory.hold(parts)
    return memory


def test_a_step_that_was_not_finished_leaves_no_trace() -> None:
    """The first rank is thrown out of its backward, the second is not: in the end they are the same."""
    disturbed, calm = _model(), _model()
    for model, broken in ((disturbed, True), (calm, False)):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        memory = _memory(TorchWorld("gloo"), model=model, optimizer=optimizer)
        torch.manual_seed(5)
        _train(model, optimizer)
        memory.commit(1)
        if broken:
            optimizer.param_groups[0]["lr"] = 7.0
            _train(model, optimizer, step=False)  # running means and gradients have changed
            assert memory.offered_step == 1
            memory.rewind()
        _train(model, optimizer)
    assert _same(disturbed, calm)


def test_a_rank_that_stepped_and_did_not_commit_offers_nothing() -> None:
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    memory = _memory(TorchWorld("gloo"), model=model)  # the optimizer is not even among the parts
    memory.commit(4)
    _train(model, optimizer)
    assert memory.offered_step == NOTHING
    memory.commit(5)
    assert memory.offered_step == 5


def test_a_newcomer_goes_on_as_the_others_do() -> None:
    old, new = _model(), torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    optimizers = [torch.optim.Adam(model.parameters(), lr=0.1) for model in (old, new)]
    world = TorchWorld("gloo")
    giver = _memory(world, model=old, optimizer=optimizers[0])
    _train(old, optimizers[0])
    giver.commit(1)
    taker = _memory(world, model=new, optimizer=optimizers[1])
    taker.load(unpack(memoryview(bytearray(b"".join(pack(giver.state()))))))
    taker.commit(1)
    for model, optimizer in zip((old, new), optimizers, strict=True):
        torch.manual_seed(9)
        _train(model, optimizer)
    assert _same(old, new)


_RANK = textwrap.dedent("""
    import sys, threading, time
    import torch, torch.distributed as dist
    from strata.integrations.torch_world import TorchWorld
    from strata.worker.elastic.worlds import Meeting

    rank, ports = int(sys.argv[1]), [int(port) for port in sys.argv[2:]]
    world = TorchWorld("gloo")
    for number, port in enumerate(ports):
        meeting = Meeting(number=number, size=2, master_addr="127.0.0.1", master_port=port, gang_port=0)
        world.host(meeting, rank)
        world.enter(meeting, rank)
        total = torch.ones(3)
        dist.all_reduce(total)
        assert total.tolist() == [2.0] * 3
        if rank == 0 and number == 0:
            threading.Timer(0.2, world.abort).start()
            try:
                dist.all_reduce(torch.ones(3))  # the other one does not come, and its connection stands
            except RuntimeError:
                print("ended", flush=True)
        elif number == 0:
            sys.stdin.readline()
        world.abort()
        world.leave()
    print("met again", flush=True)
""")


def test_a_collective_that_waits_is_ended_and_the_next_world_meets() -> None:
    ports = [str(port) for port in free_ports(2)]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", _RANK, str(rank), *ports], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    try:
        first = ranks[0].stdout
        assert first is not None
        assert first.readline() == "ended\n"
        assert ranks[1].communicate("go on\n", timeout=120)[0] == "met again\n"
        assert ranks[0].communicate(timeout=120)[0] == "met again\n"
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


_LATE = textwrap.dedent("""
    import sys, threading
    import torch, torch.distributed as dist
    from strata.integrations.torch_world import TorchWorld
    from strata.worker.elastic.worlds import Meeting

    rank, ports = int(sys.argv[1]), [int(port) for port in sys.argv[2:]]
    world = TorchWorld("gloo")
    first, second = (
        Meeting(number=number, size=2, master_addr="127.0.0.1", master_port=port, gang_port=0)
        for number, port in enumerate(ports)
    )
    world.host(first, rank)
    print("hosts", flush=True)
    sys.stdin.readline()
    if rank == 1:
        gone = threading.Event()

        def end() -> None:
            while not gone.wait(0.1):
                world.abort()

        threading.Thread(target=end).start()
        try:
            world.enter(first, rank)  # the other one never comes
        except Exception as error:
            print("given up", flush=True)
        gone.set()
    world.leave()
    world.host(second, rank)
    world.enter(second, rank)
    total = torch.ones(3)
    dist.all_reduce(total)
    print("met" if total.tolist() == [2.0] * 3 else total, flush=True)
    world.leave()
""")


def test_a_world_that_never_met_does_not_keep_its_ranks_from_the_next() -> None:
    """One rank was in torch's own set-up when another died, this one was not there yet: torch counts its groups, and
    names them by that count."""
    ports = [str(port) for port in free_ports(2)]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", _LATE, str(rank), *ports], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    try:
        for rank in ranks:
            assert rank.stdout is not None
            assert rank.stdin is not None
            assert rank.stdout.readline() == "hosts\n"
        waits = ranks[1]
        assert waits.stdout is not None
        assert waits.stdin is not None
        waits.stdin.write("enter\n")
        waits.stdin.flush()
        assert waits.stdout.readline() == "given up\n"
        assert ranks[0].communicate("go on\n", timeout=120)[0] == "met\n"
        assert waits.communicate(timeout=120)[0] == "met\n"
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
