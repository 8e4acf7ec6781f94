"""How the ranks of a gang find each other: rank 0 listens, the others dial, and both sides prove that they know the
attempt's secret before anything else is said. Anybody can connect to a port: whoever is silent, talks rubbish or does
not know the secret is dropped, and holds nobody up.
"""

import contextlib
import hmac
import logging
import secrets
import selectors
import socket
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from strata.errors import PeerLost
from strata.types.ranks import ranks_text

__all__ = ["Address", "dial", "gather"]

_log = logging.getLogger(__name__)

JOIN_S = 300.0  # within which all ranks come; one may still load its data
SAY_S = 10.0  # a wait this long is said: perhaps not every rank makes the call that needs all of them
_HELLO_S = 10.0  # within which a connection says who it is
_RETRY_S = 0.02
_LOOK_S = 0.1
_NONCE = 32
_HELLO = _NONCE + 4 + 32  # nonce, rank, proof
_SPARE = 64  # connections beyond those of the ranks that may wait to be heard

Address = tuple[str, int]
GivenUp = Callable[[], bool]


class _Patience:
    """How long a rank waits for others, and one line about it on the way."""

    def __init__(self, join_s: float, say_s: float) -> None:
        now = time.monotonic()
        self.ends_at = now + join_s
        self._say_at = now + say_s

    def over(self) -> bool:
        return time.monotonic() > self.ends_at

    def say(self, what: str) -> None:
        if time.monotonic() > self._say_at:
            self._say_at = self.ends_at
            _log.warning("%s: run.gang and recover() need a call by every rank", what)


class _Caller:
    """A connection that has not proved itself yet."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self.socket = connected
        self.deadline = deadline
        self.nonce = secrets.token_bytes(_NONCE)
        self.heard = b""
        connected.setblocking(False)
        connected.send(self.nonce)

    def rank(self, secret: bytes, world_size: int) -> int | None:
        """The rank that it has proved to be, None while it has not said everything. Raises ValueError for others."""
        data = self.socket.recv(_HELLO - len(self.heard))
        if not data:
            raise ValueError("it hung up")
        self.heard += data
        if len(self.heard) < _HELLO:
            return None
        nonce, rank = self.heard[:_NONCE], self.heard[_NONCE : _NONCE + 4]
        number = int.from_bytes(rank, "big")
        if not hmac.compare_digest(self.heard[_NONCE + 4 :], _proof(secret, b"rank", self.nonce, nonce, rank)):
            raise ValueError("it does not know the secret")
        if not 0 < number < world_size:
            raise ValueError(f"there is no rank {number}")
        self.socket.send(_proof(secret, b"host", nonce, self.nonce, rank))
        return number


class _Meeting:
    """Rank 0's side, while it goes on."""

    def __init__(self, server: socket.socket, world_size: int, secret: bytes) -> None:
        self.peers: dict[int, Connection[Any, Any]] = {}
        self._server = server
        self._world_size = world_size
        self._secret = secret
        self._callers: dict[int, _Caller] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(server, selectors.EVENT_READ)

    @property
    def missing(self) -> list[int]:
        return [rank for rank in range(1, self._world_size) if rank not in self.peers]

    def wait(self, seconds: float) -> None:
        """For whatever comes next, at most that long."""
        now = time.monotonic()
        for late in [number for number, caller in self._callers.items() if now > caller.deadline]:
            self._drop(late)
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._server:
                self._accept()
            elif key.fd in self._callers:
                self._hear(key.fd)

    def close(self) -> None:
        for number in list(self._callers):
            self._drop(number)
        self._selector.close()
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it hung up already
            connected, _ = self._server.accept()
            if len(self._callers) >= self._world_size + _SPARE:
                self._drop(next(iter(self._callers)))
            self._callers[connected.fileno()] = _Caller(connected, time.monotonic() + _HELLO_S)
            self._selector.register(connected, selectors.EVENT_READ)

    def _hear(self, number: int) -> None:
        caller = self._callers[number]
        try:
            rank = caller.rank(self._secret, self._world_size)
        except BlockingIOError:
            return
        except (ValueError, OSError):
            self._drop(number)
            return
        if rank is not None:
            self._selector.unregister(caller.socket)
            del self._callers[number]
            if rank in self.peers:  # it gave up its first connection and dialled again
                self.peers[rank].close()
            self.peers[rank] = _connection(caller.socket)

    def _drop(self, number: int) -> None:
        caller = self._callers.pop(number)
        self._selector.unregister(caller.socket)
        caller.socket.close()


def gather(
    address: Address,
    world_size: int,
    secret: bytes,
    join_s: float = JOIN_S,
    say_s: float = SAY_S,
    given_up: GivenUp = lambda: False,
) -> "dict[int, Connection[Any, Any]]":
    """Rank 0's side: a connection to every other rank. Raises PeerLost when some have not come in time."""
    patience = _Patience(join_s, say_s)
    with contextlib.closing(_Meeting(_listen(address, world_size), world_size, secret)) as meeting:
        while meeting.missing:
            if patience.over():
                raise PeerLost(f"{ranks_text(meeting.missing)} did not come to the gang within {join_s:g} s")
            if given_up():
                raise PeerLost(f"the world changed while rank 0 waited for {ranks_text(meeting.missing)}")
            patience.say(f"rank 0 waits for {ranks_text(meeting.missing)}")
            meeting.wait(_LOOK_S)
        return meeting.peers


def _listen(address: Address, world_size: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        server = socket.create_server(address, family=family, backlog=world_size + _SPARE)
    except OSError as error:
        raise PeerLost(f"the ranks cannot meet at {address[0]}:{address[1]}: {error.strerror or error}") from None
    server.setblocking(False)
    return server


def dial(
    address: Address,
    rank: int,
    secret: bytes,
    join_s: float = JOIN_S,
    say_s: float = SAY_S,
    given_up: GivenUp = lambda: False,
) -> "Connection[Any, Any]":
    """Another rank's side: the connection to rank 0, which may still be starting."""
    patience = _Patience(join_s, say_s)
    said = "does not answer"
    while not patience.over():
        if given_up():
            raise PeerLost(f"the world changed while rank {rank} waited for rank 0")
        patience.say(f"rank {rank} waits for rank 0")
        try:
            with contextlib.suppress(OSError):
                return _dial_once(address, rank, secret, patience.ends_at)
        except ValueError as error:
            said = str(error)
        time.sleep(_RETRY_S)
    raise PeerLost(f"rank 0 at {address[0]}:{address[1]} {said}, for {join_s:g} s")


def _dial_once(address: Address, rank: int, secret: bytes, deadline: float) -> "Connection[Any, Any]":
    until = min(deadline, time.monotonic() + _HELLO_S)
    connected = socket.create_connection(address, timeout=max(0.01, until - time.monotonic()))
    try:
        theirs = _receive(connected, _NONCE, until)
        mine, number = secrets.token_bytes(_NONCE), rank.to_bytes(4, "big")
        connected.sendall(mine + number + _proof(secret, b"rank", theirs, mine, number))
        answer = _receive(connected, 32, until)
        if not hmac.compare_digest(answer, _proof(secret, b"host", mine, theirs, number)):
            raise ValueError("does not know the secret: another program listens there")
        return _connection(connected)
    except BaseException:
        connected.close()
        raise


def _receive(connected: socket.socket, size: int, until: float) -> bytes:
    data = b""
    while len(data) < size:
        connected.settimeout(max(0.01, until - time.monotonic()))
        part = connected.recv(size - len(data))
        if not part:
            raise ConnectionResetError
        data += part
    return data


def _connection(connected: socket.socket) -> "Connection[Any, Any]":
    connected.setblocking(True)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Connection(connected.detach())


def _proof(secret: bytes, *parts: bytes) -> bytes:
    return hmac.digest(secret, b"".join(parts), "sha256")
