"""The ranks' meeting: all of them come, whoever else comes by holds nobody up, and nobody waits for ever."""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from strata.errors import PeerLost
from strata.worker.collective.meeting import Address, dial, gather

_SECRET = b"of this attempt"


@pytest.fixture
def address() -> Address:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        found: Address = probe.getsockname()
        return found


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


def _connect(address: Address) -> socket.socket:
    """As soon as rank 0 listens."""
    deadline = time.monotonic() + 30
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(address)
        assert time.monotonic() < deadline


def _talk(peers: dict[int, Any], dialled: dict[int, Any]) -> None:
    assert sorted(peers) == sorted(dialled)
    for rank, peer in peers.items():
        peer.send_bytes(b"to %d" % rank)
        assert dialled[rank].recv_bytes() == b"to %d" % rank
    for one in (*peers.values(), *dialled.values()):
        one.close()


def test_all_ranks_meet_whatever_else_knocks(address: Address, pool: ThreadPoolExecutor) -> None:
    """More silent connections than there is room for, rubbish, strangers that know the protocol but no secret."""
    hosting = pool.submit(gather, address, 4, _SECRET)
    strangers = [_connect(address) for _ in range(100)]
    for number, stranger in enumerate(strangers[:50]):
        with contextlib.suppress(OSError):  # dropped already
            stranger.send(os.urandom(number * 3 + 1) if number % 2 else b"GET / HTTP/1.1\r\n\r\n" * 5)
    liars = [pool.submit(dial, address, rank, b"a guess", 0.5) for rank in (1, 2, 3)]
    dialled = {rank: pool.submit(dial, address, rank, _SECRET) for rank in (3, 1, 2)}
    _talk(hosting.result(60), {rank: one.result(60) for rank, one in dialled.items()})
    for liar in liars:
        with pytest.raises(PeerLost):
            liar.result(60)
    for stranger in strangers:
        stranger.close()


def test_a_rank_that_does_not_come_is_named(address: Address, pool: ThreadPoolExecutor) -> None:
    hosting = pool.submit(gather, address, 4, _SECRET, 1.0)
    came = dial(address, 2, _SECRET)
    with pytest.raises(PeerLost, match=r"ranks 1, 3 did not come to the gang within 1 s"):
        hosting.result(60)
    came.close()


def test_a_rank_is_not_taken_in_by_another_listener(address: Address, pool: ThreadPoolExecutor) -> None:
    with pytest.raises(PeerLost, match="does not answer"):
        dial(address, 1, _SECRET, 0.2)
    with socket.create_server(address) as listener:

        def serve() -> None:
            while True:
                connected, _ = listener.accept()
                with connected, contextlib.suppress(OSError):
                    connected.send(os.urandom(32))
                    connected.recv(100)
                    connected.send(os.urandom(32))

        pool.submit(serve)
        with pytest.raises(PeerLost, match="another program listens there"):
            dial(address, 1, _SECRET, 3.0)
        listener.shutdown(socket.SHUT_RDWR)


def test_a_rank_beyond_the_world_is_nobody(address: Address, pool: ThreadPoolExecutor) -> None:
    hosting = pool.submit(gather, address, 2, _SECRET)
    with pytest.raises(PeerLost):
        dial(address, 2, _SECRET, 0.5)
    one = dial(address, 1, _SECRET)
    _talk(hosting.result(60), {1: one})


def test_a_port_that_is_taken_is_said(address: Address) -> None:
    with (
        socket.create_server(address),
        pytest.raises(PeerLost, match=r"the ranks cannot meet at .*: Address already in use"),
    ):
        gather(address, 2, _SECRET)


def test_a_wait_for_ranks_that_do_not_come_is_said_once(address: Address, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(PeerLost, match=r"ranks 1, 2 did not come"):
        gather(address, 3, _SECRET, join_s=1.5, say_s=0.1)
    with pytest.raises(PeerLost, match="does not answer"):
        dial(address, 2, _SECRET, join_s=0.5, say_s=0.1)
    assert [record.message for record in caplog.records] == [
        "rank 0 waits for ranks 1, 2: run.gang and recover() need a call by every rank",
        "rank 2 waits for rank 0: run.gang and recover() need a call by every rank",
    ]
