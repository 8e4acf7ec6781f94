"""SIGTERM at awkward moments: the observatory ends well and in time, leaves no process, and loses nothing."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until

_BATCH = 5_000


def post(process: ObservatoryProcess, batches: int) -> int:
    """Acknowledged points; returns how many."""
    for number in range(batches):
        steps = range(number * _BATCH, (number + 1) * _BATCH)
        points = [{"metric": "loss", "step": step, "value": 0.5, "event_time": 1_794_000_000 + step} for step in steps]
        response = process.post("/api/runs/stop/points", {"points": points})
        assert response.status_code == 200, response.text
    return batches * _BATCH


def stop_in_time(process: ObservatoryProcess) -> None:
    """One that must be ended by force, after 15 s, has another exit code."""
    store = process.store_pid()
    process.stop()
    assert store is None or _ended(store), "the store process was left behind"


def _ended(pid: int) -> bool:
    """A store that was killed is nobody's child any more, and stays as a zombie until the system collects it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def total(process: ObservatoryProcess) -> int:
    """What the store has, once it has taken what was in the spool."""
    series = process.get("/metrics/stop", from_step=0, points=2)["series"]
    return sum(one["total_points"] for one in series)


def assert_all_there(process: ObservatoryProcess, expected: int) -> None:
    process.start()
    wait_until(process.store_ready, "the store's return")
    wait_until(lambda: process.get("/api/status")["spool_backlog_bytes"] == 0, "an empty spool")
    assert total(process) == expected


@pytest.mark.slow
def test_before_the_store_is_ready(observatory: ObservatoryProcess) -> None:
    """Takes about 6 s: two starts of real processes."""
    expected = post(observatory, 1)
    stop_in_time(observatory)
    assert_all_there(observatory, expected)


@pytest.mark.slow
def test_during_an_insert_that_a_reader_waits_for(observatory: ObservatoryProcess) -> None:
    """Takes about 8 s: two starts of real processes. A zoomed chart makes the writer hurry, which once cost it the
    cancellation: it ran on for ever."""
    wait_until(observatory.store_ready, "the store's start")
    expected = post(observatory, 10)
    url = f"{observatory.http}/metrics/stop"
    readers = [threading.Thread(target=_read_until_gone, args=(url,)) for _ in range(3)]
    for reader in readers:
        reader.start()
    stop_in_time(observatory)
    for reader in readers:
        reader.join()
    assert_all_there(observatory, expected)


@pytest.mark.slow
def test_with_open_streams_and_a_signal_to_the_whole_group(observatory: ObservatoryProcess) -> None:
    """Systemd and a terminal send it to the store as well: it must not leave before its parent has done with it.
    Two streams, one that reads and one that does not: neither can hold the server."""
    wait_until(observatory.store_ready, "the store's start")
    store = observatory.store_pid()
    assert store is not None
    os.kill(store, signal.SIGTERM)
    os.kill(store, signal.SIGINT)
    post(observatory, 1)
    assert total(observatory) == _BATCH
    assert observatory.store_pid() == store
    with httpx.stream("GET", f"{observatory.http}/stream", timeout=60) as reading, _deaf_stream(observatory.http):
        lines = reading.iter_lines()
        next(lines)
        post(observatory, 4)
        stop_in_time(observatory)
        for _ in lines:
            pass  # ends in order: a broken stream would raise


@pytest.mark.slow
def test_with_a_store_that_hangs(observatory: ObservatoryProcess) -> None:
    """Takes about 15 s: the store gets its time, and is killed; two starts of real processes."""
    wait_until(observatory.store_ready, "the store's start")
    store = observatory.store_pid()
    assert store is not None
    os.kill(store, signal.SIGSTOP)
    expected = post(observatory, 2)
    stop_in_time(observatory)
    assert_all_there(observatory, expected)


def _read_until_gone(url: str) -> None:
    try:
        while True:
            httpx.get(url, params={"from_step": 0, "points": 2}, timeout=60)
    except httpx.TransportError:
        return


@contextmanager
def _deaf_stream(http: str) -> Iterator[None]:
    """Asks for the stream and never reads it; small buffers, so that the server's side fills up."""
    target = urlsplit(http)
    with closing(socket.socket()) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect((target.hostname, target.port))
        sock.sendall(f"GET /stream HTTP/1.1\r\nHost: {target.netloc}\r\n\r\n".encode())
        yield
