"""One connection that does its worst, and another one that asks for the coordinator's health all the while.

How long the coordinator kept others waiting is measured by the CPU time it spent while a health check waited: that is
the same on a quiet machine and on a busy one.
"""

import gzip
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from strata.grpcserver.frames import PREFACE, Fault, Flag, Kind, Setting, build_frame
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.hostile_peer import PING, HostilePeer, data, head, headers, literal, reset, setting, window
from tests.support.waiting import eventually

_log = logging.getLogger(__name__)

HEALTH = head("/grpc.health.v1.Health/Check")
WATCH = head("/grpc.health.v1.Health/Watch")
STATE = head("/strata.control.Control/ListWorkers")
REGISTER = head("/coordinator.Coordinator/RegisterWorker")
BEATS = head("/coordinator.Coordinator/StreamHeartbeats")
EMPTY = b"\0\0\0\0\0"
MAX_RSS = 300 << 20
MAX_WAIT_S = 1.0


class Probe:
    """Health checks on a connection of their own, one after the other, until it is left."""

    def __init__(self, coordinator: CoordinatorProcess) -> None:
        self._process = psutil.Process(coordinator.pid)
        self._channel = grpc.insecure_channel(coordinator.address)
        stub: Any = HealthStub(self._channel)  # its types know no methods
        self._check = stub.Check
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.longest_s = 0.0  # CPU of the coordinator during one check
        self.answers = 0
        self.failure: grpc.RpcError | None = None

    def __enter__(self) -> "Probe":
        self._check(HealthCheckRequest(), timeout=60)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._channel.close()

    def wait_for(self, number: int) -> None:
        """So many more answers."""
        enough = self.answers + number
        eventually("health checks", lambda: self.failure or self.answers >= enough, within_s=90)

    def _run(self) -> None:
        while not self._done.is_set() and self.failure is None:
            before = self._cpu_s()
            try:
                self._check(HealthCheckRequest(), timeout=60)
            except grpc.RpcError as error:
                self.failure = error
            self.longest_s = max(self.longest_s, self._cpu_s() - before)
            self.answers += 1
            time.sleep(0.01)

    def _cpu_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)


def opened(block: bytes, number: int, *, first: int = 1) -> bytes:
    return b"".join(headers(first + 2 * each, block) for each in range(number))


def unknown_methods() -> Iterator[bytes]:
    """4.6 MB of calls whose answers nobody reads."""
    for stream in range(1, 2 * 60_000, 2):
        yield headers(stream, head(f"/no.Such/Method{stream:020}"), end=True)


def long_unknown_methods() -> Iterator[bytes]:
    block = head("/no.Such/" + "ü" * 3_000)
    for stream in range(1, 2 * 5_000, 2):
        yield headers(stream, block, end=True)


def settings_work() -> Iterator[bytes]:
    """10,000 open calls, then settings that change the window of each of them thousands of times."""
    yield opened(BEATS, 10_000)
    entry = setting(Setting.INITIAL_WINDOW_SIZE, 65_535) + setting(Setting.INITIAL_WINDOW_SIZE, 65_536)
    for _ in range(3):
        yield build_frame(Kind.SETTINGS, 0, 0, entry * 1_350)


def settings_flood() -> Iterator[bytes]:
    yield opened(BEATS, 1_000)
    yield from [build_frame(Kind.SETTINGS, 0, 0, setting(Setting.INITIAL_WINDOW_SIZE, 70_000)) * 100] * 500


def rapid_reset() -> Iterator[bytes]:
    for stream in range(1, 2 * 100_000, 2):
        yield headers(stream, REGISTER) + reset(stream)


def rapid_reset_of_streams() -> Iterator[bytes]:
    for stream in range(1, 2 * 50_000, 2):
        yield headers(stream, WATCH) + data(stream, EMPTY, end=True) + reset(stream)


def indexed_headers() -> Iterator[bytes]:
    """2,550 distinct blocks, each of 1,700 one-byte references into HPACK's table."""
    for number in range(2_550):
        distinct = bytes([0x80 | 2 + (number >> 8), 0x80 | 1 + (number & 31), 0x80 | 1 + (number >> 3 & 31)])
        yield headers(2 * number + 1, HEALTH + distinct + b"\xa6" * 1_650, end=True)


def long_headers() -> Iterator[bytes]:
    """As much as is allowed, each block another one, so that none is remembered."""
    for number in range(20_000):
        yield headers(2 * number + 1, HEALTH + b"\x90" * 300 + bytes([0x80 | 1 + number % 61]) * 20, end=True)


def unfinished_messages() -> Iterator[bytes]:
    """1,001 streams, each with all but the last byte of a message of 4 MB."""
    for stream in range(1, 2 * 1_001, 2):
        yield headers(stream, REGISTER)
    chunk = bytes(16_000)
    for stream in range(1, 2 * 1_001, 2):
        yield data(stream, b"\0" + (4 << 20).to_bytes(4, "big"))
    for _ in range(63):
        for stream in range(1, 2 * 1_001, 2):
            yield data(stream, chunk)


def unread_messages() -> Iterator[bytes]:
    """Whole messages for calls that take one: the handler never starts, because the request does not end."""
    for stream in range(1, 2 * 1_000, 2):
        yield headers(stream, REGISTER)
    for _ in range(60):
        for stream in range(1, 2 * 1_000, 2):
            yield data(stream, b"\0" + (16_000).to_bytes(4, "big") + bytes(16_000))


def inflating_messages() -> Iterator[bytes]:
    """A thousand calls, each with 4 KB that are 4 MB when they are read; no request ends."""
    block = REGISTER + literal(b"grpc-encoding", b"gzip")
    small = gzip.compress(bytes((4 << 20) - 100))
    for stream in range(1, 2 * 1_000, 2):
        yield headers(stream, block) + data(stream, b"\1" + len(small).to_bytes(4, "big") + small)


def pings() -> Iterator[bytes]:
    yield from [PING * 1_000] * 1_000


def empty_data() -> Iterator[bytes]:
    yield headers(1, BEATS)
    yield from [data(1, b"") * 1_000] * 2_000


def padded_data() -> Iterator[bytes]:
    yield headers(1, BEATS)
    yield from [build_frame(Kind.DATA, Flag.PADDED, 1, bytes([255]) + bytes(255)) * 100] * 2_000


def one_byte_data() -> Iterator[bytes]:
    """A message of 4 MB, a byte per frame."""
    yield headers(1, BEATS) + data(1, b"\0" + (4 << 20).to_bytes(4, "big"))
    yield from [data(1, b"\0") * 1_000] * 1_000


def window_games() -> Iterator[bytes]:
    """A thousand answers that wait for windows which open by a byte at a time."""
    yield build_frame(Kind.SETTINGS, 0, 0, setting(Setting.INITIAL_WINDOW_SIZE, 0))
    for stream in range(1, 2 * 1_000, 2):
        yield headers(stream, STATE) + data(stream, EMPTY, end=True)
    yield from [window(0, 1) * 1_000] * 300
    for number in count(0):
        yield window(1 + 2 * (number % 1_000), 1) * 100
        if number == 5_000:
            return


def unread_states() -> Iterator[bytes]:
    """A list, asked for again and again, and never read."""
    yield build_frame(Kind.SETTINGS, 0, 0, setting(Setting.INITIAL_WINDOW_SIZE, 2**31 - 1)) + window(0, 2**31 - 70_000)
    for stream in range(1, 2 * 20_000, 2):
        yield headers(stream, STATE) + data(stream, EMPTY, end=True)


def unread_health() -> Iterator[bytes]:
    yield build_frame(Kind.SETTINGS, 0, 0, setting(Setting.INITIAL_WINDOW_SIZE, 2**31 - 1)) + window(0, 2**31 - 70_000)
    for stream in range(1, 2 * 100_000, 2):
        yield headers(stream, HEALTH) + data(stream, EMPTY, end=True)


def watches() -> Iterator[bytes]:
    """Streaming answers without end that nobody reads."""
    watch = head("/strata.control.Control/WatchState")
    for stream in range(1, 2 * 1_000, 2):
        yield headers(stream, watch) + data(stream, EMPTY, end=True)


def trailers() -> Iterator[bytes]:
    yield headers(1, BEATS)
    yield from [headers(1, HEALTH) * 100] * 2_000


def continuations() -> Iterator[bytes]:
    yield build_frame(Kind.HEADERS, 0, 1, HEALTH)
    yield from [build_frame(Kind.CONTINUATION, 0, 1, b"\x90") * 1_000] * 1_000


def priorities() -> Iterator[bytes]:
    yield from [build_frame(Kind.PRIORITY, 0, 1, bytes(5)) * 1_000] * 2_000


ATTACKS: list[Callable[[], Iterator[bytes]]] = [
    unknown_methods,
    long_unknown_methods,
    settings_work,
    settings_flood,
    rapid_reset,
    rapid_reset_of_streams,
    indexed_headers,
    long_headers,
    unfinished_messages,
    unread_messages,
    inflating_messages,
    pings,
    empty_data,
    padded_data,
    one_byte_data,
    window_games,
    unread_states,
    unread_health,
    watches,
    trailers,
    continuations,
    priorities,
]


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """One coordinator for all attacks: what one leaves behind, the next one finds."""
    with CoordinatorProcess(tmp_path_factory.mktemp("floods") / "data") as process:
        yield process


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_rss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("the kernel knows no peak")


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_one_connection_cannot_stop_the_coordinator(
    attack: Callable[[], Iterator[bytes]], besieged: CoordinatorProcess
) -> None:
    forget_peak(besieged.pid)
    with Probe(besieged) as probe, HostilePeer(besieged.address) as peer:
        peer.greet()
        how = peer.send(attack())
        probe.wait_for(20)
    assert probe.failure is None
    used = f"{how}; a health check waited for {probe.longest_s:.2f} s of CPU, peak {peak_rss(besieged.pid) >> 20} MB"
    _log.info("%s: %s", attack.__name__, used)
    assert probe.longest_s < MAX_WAIT_S, used
    assert peak_rss(besieged.pid) < MAX_RSS, used


@pytest.mark.slow
def test_many_half_open_connections_keep_nobody_out(besieged: CoordinatorProcess) -> None:
    forget_peak(besieged.pid)
    with ExitStack() as stack:
        probe = stack.enter_context(Probe(besieged))
        for number in range(3_000):
            peer = stack.enter_context(HostilePeer(besieged.address))
            peer.send([PREFACE[: number % len(PREFACE)]])
        probe.wait_for(20)
    assert probe.failure is None
    assert probe.longest_s < MAX_WAIT_S
    assert peak_rss(besieged.pid) < MAX_RSS


def test_the_peer_and_the_log_are_told_why(besieged: CoordinatorProcess) -> None:
    with HostilePeer(besieged.address) as peer:
        peer.greet()
        # A hundred a second are allowed: too many on the slowest machine as well.
        peer.send([build_frame(Kind.SETTINGS, 0, 0) * 10_000], read=True, within_s=60)
        _, _, _, goodbye = peer.frames(until=Kind.GOAWAY)[-1]
        assert int.from_bytes(goodbye[4:8], "big") == Fault.ENHANCE_YOUR_CALM
        assert goodbye[8:] == b"too many changes of settings"
    eventually("a line in the log", lambda: "ENHANCE_YOUR_CALM" in besieged.log())
    assert len(besieged.log()) < 100_000, "what a peer does does not fill the log"
