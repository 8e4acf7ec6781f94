"""What a request may cost the observatory, whoever sends it: bodies, heads, parameters, samples, log lines."""

import contextlib
import itertools
import selectors
import socket
from collections.abc import Iterator

import grpc
import httpx
import psutil
import pytest

from strata.protocol.generated.telemetry_pb2 import Batch, LogLine, Sample
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub
from tests.integration.observatory.conftest import ObservatoryProcess
from tests.support.local_http import LOCAL

MEGABYTE = b" " * (1 << 20)


def rss(process: ObservatoryProcess) -> int:
    return int(psutil.Process(process.pid).memory_info().rss)


@pytest.mark.parametrize("path", ["/api/runs/r1/points", "/api/tasks", "/api/datasets"])
def test_a_body_without_end_is_cut(shared_observatory: ObservatoryProcess, path: str) -> None:
    before, sent = rss(shared_observatory), 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(300):
            sent += 1
            yield MEGABYTE

    headers = {"content-type": "application/json"}
    try:
        answer = LOCAL.post(f"{shared_observatory.http}{path}", content=endless(), headers=headers)
        assert answer.status_code == 413
        assert "bytes" in answer.json()["error"]["message"]
    except httpx.WriteError:
        pass  # the connection was closed while it was still sending
    assert sent < 300, "all of it was read"
    assert rss(shared_observatory) - before < 150 << 20


def test_a_body_that_says_how_long_it_is_is_not_even_read(shared_observatory: ObservatoryProcess) -> None:
    headers = {"content-type": "application/json"}
    answer = LOCAL.post(f"{shared_observatory.http}/api/tasks", content=MEGABYTE + b"x", headers=headers)
    assert answer.status_code == 413
    assert answer.json()["error"]["message"] == "the body is larger than 1,048,576 bytes"


def test_a_get_takes_no_body(shared_observatory: ObservatoryProcess) -> None:
    chunks = itertools.repeat(b"x", 10)
    answer = LOCAL.request("GET", f"{shared_observatory.http}/api/runs", content=chunks)
    assert answer.status_code == 413


def test_a_head_without_end_is_cut(shared_observatory: ObservatoryProcess) -> None:
    host, _, port = shared_observatory.http.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n")
        try:
            for number in range(10_000):
                connection.sendall(b"x-%d: %b\r\n" % (number, b"y" * 1000))
        except ConnectionError:
            return
        assert b" 400 " in connection.recv(1000)


@pytest.mark.parametrize(
    "path",
    [
        "/api/metrics/r1?from_step=100000000000000000000",
        "/api/metrics/r1?to_step=-1",
        "/api/metrics/r1?from_time=1e400",
        "/api/logs?before=1e400",
        "/api/logs?after=-1e400",
        "/api/logs?before=nan",
        "/api/logs?limit=99999999999999999999999",
        "/api/datasets/d/shards?epoch=100000000000000000000",
        "/api/series?ids=1&points=99999999999999999999",
    ],
)
def test_an_absurd_parameter_is_refused_with_a_sentence(shared_observatory: ObservatoryProcess, path: str) -> None:
    answer = LOCAL.get(f"{shared_observatory.http}{path}")
    assert 400 <= answer.status_code < 500
    assert answer.json()["error"]["message"]


@pytest.mark.slow
def test_clients_with_filters_of_their_own_cost_no_copy_each(observatory: ObservatoryProcess) -> None:
    """150 clients, each with runs of its own choice, once cost 34 MB a second: a copy per filter and event was kept."""
    runs = [f"run-{number:02d}" for number in range(5)]
    _log_everywhere(observatory, runs, step=0)
    with _followers(observatory, [",".join((runs[n % 5], f"own-{n}")) for n in range(150)]) as followers:
        _feed(followers, observatory, runs, 424_242)
        before = rss(observatory)
        received = _feed(followers, observatory, runs, 848_484)
    assert received > 100 << 20, "the followers were not fed"
    assert rss(observatory) - before < 60 << 20


def _log_everywhere(observatory: ObservatoryProcess, runs: list[str], *, step: int) -> None:
    points = [{"metric": f"layer/{name:04d}", "step": step, "value": 1.5 * name} for name in range(2000)]
    for run in runs:
        LOCAL.post(f"{observatory.http}/api/runs/{run}/points", json={"points": points}).raise_for_status()


@contextlib.contextmanager
def _followers(observatory: ObservatoryProcess, choices: list[str]) -> Iterator[list[socket.socket]]:
    """Raw connections to /stream: what they read is thrown away, so the test's own process does not grow."""
    host, _, port = observatory.http.removeprefix("http://").rpartition(":")
    with contextlib.ExitStack() as stack:
        followers = []
        for choice in choices:
            follower = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            follower.sendall(
                f"GET /stream?topics=metrics&runs={choice} HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n".encode()
            )
            followers.append(follower)
        yield followers


def _feed(followers: list[socket.socket], observatory: ObservatoryProcess, runs: list[str], last: int) -> int:
    """Logs ten steps and then `last`, and reads until everybody has seen that one; returns the bytes."""
    received, steps = 0, iter([*range(last - 10, last), last])
    tails = dict.fromkeys(followers, b"")
    with selectors.DefaultSelector() as selector:
        for follower in followers:
            selector.register(follower, selectors.EVENT_READ, follower)
        while tails:
            if (step := next(steps, None)) is not None:
                _log_everywhere(observatory, runs, step=step)
            for key, _ in selector.select(timeout=1):
                data = key.data.recv(1 << 20)
                received += len(data)
                if key.data in tails:
                    seen = tails[key.data] + data
                    tails[key.data] = seen[-20:]
                    if str(last).encode() in seen:
                        del tails[key.data]
    return received


@pytest.mark.slow
def test_samples_and_log_lines_are_kept_within_bounds(observatory: ObservatoryProcess) -> None:
    """105 workers that each show a megabyte of samples, and lines of 64 KB: parsed, this was 2.7 GB."""
    rows = b"[" + b",".join([b'{"a":[1]}'] * 110_000)[: (1 << 20) - 100].rsplit(b",", 1)[0] + b"]"
    line = LogLine(event_time_ms=1_700_000_000_000, level="INFO", message="z" * 64_000)
    before = rss(observatory)
    with grpc.insecure_channel(observatory.telemetry) as channel:
        report = TelemetryStub(channel).ReportOnce
        for number in range(105):
            sample = Sample(dataset_id="d", worker_id=f"w{number}", rows_json=rows.decode())
            report(Batch(batch_id=f"b{number}", samples=[sample], logs=[line] * 20), timeout=60)
    assert rss(observatory) - before < 400 << 20
