"""Whose socket is at the other end, as the kernel knows it: IPv4, IPv6 and both at once, and never a yes in doubt."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from strata.trust.kernel import is_owner, user_of_peer
from strata.trust.peer import Peer
from tests.support.stranger import NOBODY, needs_root
from tests.support.waiting import eventually

_CLIENT = """
import encodings.idna, os, socket, sys
os.setuid(int(sys.argv[3]))
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
connection.sendall(b"x")
sys.stdin.read()
"""


@contextmanager
def _listener(host: str, *, both: bool = False) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, dualstack_ipv6=both) as listener:
        listener.settimeout(20)
        yield listener


@contextmanager
def _client(host: str, port: int, user: int) -> Iterator[subprocess.Popen[bytes]]:
    arguments = [sys.executable, "-c", _CLIENT, host, str(port), str(user)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def _ask(accepted: socket.socket) -> int | None:
    return user_of_peer(accepted.getsockname()[:2], accepted.getpeername()[:2])


@needs_root
@pytest.mark.parametrize(("bound", "dialled"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1")])
@pytest.mark.parametrize("user", [0, NOBODY])
def test_the_user_of_a_connection(bound: str, dialled: str, user: int) -> None:
    with _listener(bound, both=bound == "::") as listener, _client(dialled, listener.getsockname()[1], user):
        accepted, _ = listener.accept()
        assert accepted.recv(1) == b"x"
        assert _ask(accepted) == user
        peer = Peer(accepted.getsockname()[:2], accepted.getpeername()[:2])
        assert peer.owns == (user == os.getuid())
        accepted.close()


@needs_root
def test_a_peer_that_is_gone_is_nobody_though_the_kernel_shows_root() -> None:
    with _listener("127.0.0.1") as listener, _client("127.0.0.1", listener.getsockname()[1], NOBODY) as process:
        accepted, _ = listener.accept()
        assert accepted.recv(1) == b"x"
        process.kill()
        process.wait()
        eventually("the end of the stream", lambda: accepted.recv(1) == b"", within_s=20)
        assert _ask(accepted) is None
        accepted.close()


def test_no_answer_is_no_owner() -> None:
    assert user_of_peer(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert user_of_peer(("no address", 1), ("neither", 2)) is None
    assert not is_owner(None)
    assert not Peer(None, None).owns
    assert not Peer(("10.0.0.1", 1), ("10.0.0.2", 2)).owns


def test_in_a_user_namespace_all_strangers_look_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strata.trust.kernel.os.getuid", lambda: NOBODY)
    assert is_owner(NOBODY), "the real user of that number, where every user is known"
    maps = {"overflowuid": str(NOBODY), "uid_map": "0 1000 1"}
    monkeypatch.setattr("strata.trust.kernel.Path.read_text", lambda path: maps[path.name])
    assert not is_owner(NOBODY)
