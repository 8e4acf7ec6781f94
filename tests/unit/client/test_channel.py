"""Calls that find nobody are repeated with patience; errors come back as what they are. Against a real gRPC server."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from strata.client.channel import Channel, dial
from strata.client.tasks import TasksClient
from strata.errors import CoordinatorUnavailable, Unavailable, UnknownTask
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import control_pb2_grpc as ct_grpc
from strata.protocol.status import to_status, to_trailers
from strata.trust.access import Access
from tests.support.waiting import eventually


class _Control(ct_grpc.ControlServicer):
    """Refuses the first `failures` calls as if it were starting."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.seen: list[str] = []
        self.tokens: list[str] = []

    def StopTask(self, request: ct.TaskRef, context: grpc.ServicerContext) -> ct.TaskAck:  # noqa: N802  # the proto's name
        self.tokens.append(str(dict(context.invocation_metadata()).get("authorization", "")))
        self.seen.append(request.task_id)
        if len(self.seen) <= self.failures:
            context.abort(grpc.StatusCode.UNAVAILABLE, "starting")
        if request.task_id == "unknown":
            error = UnknownTask("no task 'unknown' is known", hint="look again")
            context.set_trailing_metadata(to_trailers(error))
            context.abort(to_status(error), error.message)
        return ct.TaskAck(task_id=request.task_id, status="stopped")


@pytest.fixture
def server() -> Iterator[tuple[_Control, str]]:
    server = grpc.server(ThreadPoolExecutor(2))
    control = _Control(failures=0)  # type: ignore[abstract]  # one call is enough
    ct_grpc.add_ControlServicer_to_server(control, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield control, f"127.0.0.1:{port}"
    server.stop(None)


def test_addresses_are_understood_as_people_write_them() -> None:
    assert dial("http://localhost:50051/") == dial("localhost:50051") == "localhost:50051"


def test_a_call_is_repeated_while_the_other_side_starts(server: tuple[_Control, str]) -> None:
    control, address = server
    control.failures = 2
    with Channel(address, access=Access(token="secret")) as channel:
        assert TasksClient(channel).stop("t") == "stopped"
    assert control.seen == ["t"] * 3
    assert set(control.tokens) == {"Bearer secret"}


def test_no_proxy_of_the_environment_is_dialled(server: tuple[_Control, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with Channel(server[1], patience_s=0.0) as channel:
        assert TasksClient(channel).stop("t") == "stopped"


def test_patience_ends(server: tuple[_Control, str]) -> None:
    control, address = server
    control.failures = 10**6
    with Channel(address, patience_s=0.3) as channel, pytest.raises(Unavailable):
        TasksClient(channel).stop("t")
    assert 1 < len(control.seen) < 20


def test_a_refusal_is_not_repeated_and_keeps_its_class_and_hint(server: tuple[_Control, str]) -> None:
    control, address = server
    with Channel(address) as channel, pytest.raises(UnknownTask) as caught:
        TasksClient(channel).stop("unknown")
    assert (caught.value.hint, len(control.seen)) == ("look again", 1)


def test_nobody_there_names_the_address() -> None:
    channel = Channel("127.0.0.1:1", patience_s=0.0)
    with channel, pytest.raises(CoordinatorUnavailable, match=r"127\.0\.0\.1:1"):
        TasksClient(channel).stop("t")


def test_closing_ends_a_call_that_waits() -> None:
    channel = Channel("127.0.0.1:1", patience_s=3600.0)
    threading.Timer(0.2, channel.close).start()
    with pytest.raises(Unavailable):
        TasksClient(channel).stop("t")


_SERVER = """
import concurrent.futures, grpc
from grpc_health.v1 import health, health_pb2_grpc
server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""


def test_one_of_several_that_stands_still_is_left_long_before_the_deadline_of_a_call() -> None:
    """A stopped process keeps its connections, and takes what is sent: only a ping without an answer tells."""
    servers = [subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        ports = [one.stdout.readline().strip() for one in servers if one.stdout is not None]
        with Channel(",".join(f"127.0.0.1:{port}" for port in ports)) as channel:
            check = channel.stub(health_pb2_grpc.HealthStub).Check  # type: ignore[attr-defined]  # its types know none
            channel.call(check, health_pb2.HealthCheckRequest())
            servers[0].send_signal(signal.SIGSTOP)
            stopped = psutil.Process(servers[0].pid)
            eventually(
                "it has stopped", lambda: stopped.status() == psutil.STATUS_STOPPED
            )  # a busy machine takes its time
            channel.call(check, health_pb2.HealthCheckRequest(), timeout_s=3600.0)
            assert channel.address == f"127.0.0.1:{ports[1]}"
    finally:
        for one in servers:
            one.kill()
            one.communicate()
