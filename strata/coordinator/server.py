"""The coordinator's composition root: builds every part, starts them in order, serves until told to stop, stops in
reverse. The only place that knows all parts; none of them knows this one.
"""

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from collections.abc import Callable
from typing import cast

import grpc
import uvloop
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from strata.client.endpoints import folder_endpoints
from strata.clock import SystemClock
from strata.config import Settings, check_storage
from strata.coordinator.engine.archives import Archives
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.engine.lifecycle import LifecycleLog
from strata.coordinator.engine.log_feed import LogFeed
from strata.coordinator.engine.ticker import run_ticker
from strata.coordinator.journal.base import Journal
from strata.coordinator.journal.postgres import PostgresJournal
from strata.coordinator.journal.sqlite import SqliteJournal
from strata.coordinator.rpc.agents import AgentsService
from strata.coordinator.rpc.control import ControlService
from strata.coordinator.rpc.probe import Probe
from strata.coordinator.rpc.straight import StraightTies
from strata.coordinator.rpc.ties import Ties
from strata.coordinator.rpc.together import Gathering
from strata.coordinator.rpc.trust import Surroundings, TrustService
from strata.coordinator.rpc.vitals import VitalsFeed
from strata.coordinator.rpc.workers import WorkersService
from strata.coordinator.scheduling.launch import BUILTIN_ENTRYPOINTS
from strata.coordinator.scheduling.scheduler import Scheduler
from strata.coordinator.scheduling.stragglers import StragglerRule
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.datadir import open_data_dir
from strata.errors import InvalidConfig, NotLeader
from strata.gate import Gate
from strata.grpcserver.server import Server
from strata.heap import keep_freed
from strata.network import check_free, join_address, reachable_host, write_endpoint
from strata.precedence import go_first
from strata.protocol.generated import (
    agents_pb2,
    agents_pb2_grpc,
    control_pb2,
    control_pb2_grpc,
    coordinator_pb2,
    coordinator_pb2_grpc,
    ranks_pb2,
    ranks_pb2_grpc,
    trust_pb2,
    trust_pb2_grpc,
)
from strata.trust.identity import Identity, ensure_identity
from strata.trust.proofs import Proofs
from strata.trust.token import ensure_token

__all__ = ["CoordinatorServer", "run"]

_log = logging.getLogger(__name__)

# A thousand streams are many objects that live long, and Python's defaults walk them often. CPU of a barrier arrival at
# 300 streams, two runs each on a busy machine: 168 and 188 µs with the defaults, 147 and 143 µs with 50,000 for the
# first. A barrier leaves next to nothing behind, so 10,000 come together as seldom, and to walk them takes 1 to 2 ms
# of the loop, not 12 to 15. After a large barrier they are walked at once: rpc/release_queue.py.
_GC_THRESHOLDS = (10_000, 20, 100)
# The journal's thread asks for the interpreter a few times in a commit, and gets it after so long from a loop that is
# busy. A commit while it is, median of two runs each: 20 and 12 ms with Python's 5 ms, 9 and 8 ms with 1 ms.
_SWITCH_S = 0.001
_SERVICES = (
    coordinator_pb2.DESCRIPTOR.services_by_name["Coordinator"].full_name,
    control_pb2.DESCRIPTOR.services_by_name["Control"].full_name,
    agents_pb2.DESCRIPTOR.services_by_name["Agents"].full_name,
    ranks_pb2.DESCRIPTOR.services_by_name["Ranks"].full_name,
    trust_pb2.DESCRIPTOR.services_by_name["Trust"].full_name,
)


class CoordinatorServer:
    """One control plane over one data folder."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = contextlib.AsyncExitStack()
        self.address = ""
        self.coordinator: Coordinator | None = None

    async def start(self) -> None:
        """Returns when the first call can be answered. What started before a failure is stopped again."""
        async with contextlib.AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()

    async def stop(self) -> None:
        await self._stack.aclose()

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        settings = self._settings
        check_storage(settings)
        open_data_dir(settings.data_dir)
        token = ensure_token(settings)
        identity = ensure_identity(settings)
        entrypoints = {**BUILTIN_ENTRYPOINTS, **settings.task_types}
        state = ClusterState(StateConfig(worker_lease_s=settings.heartbeat_timeout, task_types=tuple(entrypoints)))
        proofs = Proofs(token, lambda: state.cluster.tokens.records)
        clock = SystemClock()
        coordinator = Coordinator(state, _journal(settings, token, self._stand_by), clock)
        await coordinator.open()
        stack.push_async_callback(coordinator.close)
        self.coordinator = coordinator
        feed = LogFeed(settings)
        feed.start()
        stack.push_async_callback(asyncio.to_thread, feed.stop)
        lifecycle = LifecycleLog(state, clock)
        coordinator.listen(lifecycle.on_event)
        stack.callback(lifecycle.flush)
        vitals = VitalsFeed(coordinator)
        straggler = StragglerRule(factor=settings.straggler_factor, after_s=settings.straggler_after)
        ports = settings.rank_port_range
        scheduler = Scheduler(coordinator, entrypoints, proofs, settings.hang_timeout, straggler, ports)
        ties = Ties(coordinator, proofs)
        gathering = Gathering(ties)
        agents = AgentsService(coordinator, scheduler, ties, gathering, proofs)
        server = Server(Gate(proofs))
        await _add_services(
            server,
            WorkersService(coordinator),
            ControlService(coordinator, vitals, _archives(settings, state)),
            agents,
            StraightTies(ties, gathering),
            TrustService(coordinator, self._surroundings(identity)),
        )
        port = await _bind(server, settings.host, settings.grpc_port, identity)
        stack.push_async_callback(server.stop, 1.0)
        if settings.coordinator_http_port is not None:
            check_free(settings.host, settings.coordinator_http_port, flag="STRATA_COORDINATOR_HTTP_PORT")
            probe = Probe(coordinator, proofs)
            await probe.start(settings.host, settings.coordinator_http_port, identity.context() if identity else None)
            stack.push_async_callback(probe.stop)
        for job in (run_ticker(coordinator, lifecycle.flush, server.unread_s), vitals.run(), scheduler.run()):
            task = asyncio.create_task(job)
            stack.push_async_callback(_cancelled, task)
            task.add_done_callback(lambda done: _stop_on_bug(done, coordinator))
        self.address = join_address(reachable_host(settings.host, settings.advertise), port)
        file = write_endpoint(settings.data_dir / "coordinator.json", {"grpc": self.address})
        stack.callback(file.unlink, missing_ok=True)
        _log.info("coordinator at %s", self.address)

    def _stand_by(self, leader: str) -> None:
        """Nobody is served here meanwhile; whoever started this process hears why."""
        write_endpoint(self._settings.data_dir / "coordinator.json", {"standby": leader})

    def _surroundings(self, identity: Identity | None) -> Surroundings:
        def observatory() -> tuple[str, str]:
            found = folder_endpoints(self._settings)
            return (found.http, found.telemetry) if found else ("", "")

        anchor = identity.anchor if identity else ""
        return Surroundings(anchor=anchor, address=lambda: self.address, observatory=observatory)


def _journal(settings: Settings, token: str, stand_by: Callable[[str], None]) -> Journal:
    if settings.journal is None:
        return SqliteJournal(settings.data_dir / "coordinator")
    return PostgresJournal(settings.journal.get_secret_value(), token, stand_by)


def _archives(settings: Settings, state: ClusterState) -> Archives:
    def needed() -> set[str]:
        return {task.spec.code for task in list(state.tasks.tasks.values()) if not task.status.final}

    return Archives(settings.data_dir / "coordinator" / "code", needed)


async def _add_services(
    server: Server,
    workers: WorkersService,
    control: ControlService,
    agents: AgentsService,
    ties: StraightTies,
    trust: TrustService,
) -> None:
    registry = cast("grpc.aio.Server", server)  # generated code calls no more of it than ours has
    coordinator_pb2_grpc.add_CoordinatorServicer_to_server(workers, registry)
    control_pb2_grpc.add_ControlServicer_to_server(control, registry)
    agents_pb2_grpc.add_AgentsServicer_to_server(agents, registry)
    ranks_pb2_grpc.add_RanksServicer_to_server(ties, registry)
    trust_pb2_grpc.add_TrustServicer_to_server(trust, registry)
    checks = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, registry)
    serving = health_pb2.HealthCheckResponse.SERVING
    for name in ("", *_SERVICES):
        await checks.set(name, serving)
    described = reflection.aio.ReflectionServicer((*_SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME))
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(described, registry)  # type: ignore[no-untyped-call]  # its stubs have no types


def run(settings: Settings) -> None:
    """Serves until SIGTERM or SIGINT, then stops in order."""
    gc.set_threshold(*_GC_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_S)
    keep_freed()
    if not go_first():
        _log.info(
            "no right to go before other processes (CAP_SYS_NICE, or an RLIMIT_RTPRIO of 1): on a host that is busy, "
            "barriers are slower"
        )
    uvloop.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    """Who loses the lead stands by again, with nothing of what it knew."""
    while True:
        try:
            await _serve_once(settings)
        except NotLeader as error:
            _log.warning("%s; standing by", error.message)
        else:
            return


async def _serve_once(settings: Settings) -> None:
    server = CoordinatorServer(settings)
    await server.start()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    try:
        assert server.coordinator is not None
        coordinator = server.coordinator
        for number in signals:
            loop.add_signal_handler(number, coordinator.stop)
        await coordinator.stopped
    finally:
        await server.stop()
        for number in signals:
            loop.remove_signal_handler(number)


async def _bind(server: Server, host: str, port: int, identity: Identity | None) -> int:
    check_free(host, port, flag="--grpc-port")
    try:
        return await server.start(host, port, identity.context() if identity else None)
    except OSError as error:
        raise InvalidConfig(
            f"cannot listen on {join_address(host, port)}: {error.strerror or error}",
            hint="Check --host and --grpc-port.",
        ) from error


async def _cancelled(task: asyncio.Task[None]) -> None:
    """A job that ended by itself was reported by `_stop_on_bug`; here its end is all that matters."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _stop_on_bug(task: asyncio.Task[None], coordinator: Coordinator) -> None:
    """Leases and vitals must not end unnoticed: a coordinator without a pulse stops, and is started again."""
    if task.cancelled() or coordinator.stopped.done():
        return
    error = task.exception()
    _log.critical("a background job of the coordinator ended", exc_info=error)
    coordinator.stopped.set_exception(error or RuntimeError("a background job ended"))
