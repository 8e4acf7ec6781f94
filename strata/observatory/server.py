"""The observatory's composition root: builds every part, starts them in order, serves until told to stop, stops in
reverse. The only place that knows all parts; none of them knows this one.
"""

import asyncio
import gc
import logging
import signal
import socket
from functools import partial
from typing import Any

import uvloop

from strata import __version__
from strata.client.leaders import Leaders
from strata.clock import Clock, SystemClock
from strata.config import Settings, environment
from strata.datadir import open_data_dir
from strata.errors import Internal
from strata.gate import Gate
from strata.network import bind, check_free, join_address, reachable_host, write_endpoint
from strata.observatory.alerts.book import AlertBook
from strata.observatory.alerts.deliveries import Deliveries
from strata.observatory.alerts.delivery_log import DeliveryLog
from strata.observatory.alerts.rule_book import RuleBook
from strata.observatory.alerts.rule_watcher import RuleWatcher
from strata.observatory.alerts.rules import Target
from strata.observatory.alerts.run_facts import RunFactReader
from strata.observatory.alerts.watcher import AlertWatcher
from strata.observatory.answers.status import SpoolDamage, Status
from strata.observatory.background.batches import BatchQueue
from strata.observatory.background.lean import keep_pandas_out
from strata.observatory.background.otlp import OtlpConfig, OtlpExporter
from strata.observatory.background.part import FATAL
from strata.observatory.background.priority import run_in_background
from strata.observatory.background.setaside import SetAside
from strata.observatory.background.shutdown import Teardown, end_surely, print_stacks_on_signal
from strata.observatory.background.ticker import Ticker
from strata.observatory.batch.columns import Columns
from strata.observatory.cluster.attempt_feed import AttemptFeed
from strata.observatory.cluster.checkpoint_archive import CheckpointArchive
from strata.observatory.cluster.commands import CoordinatorCommands
from strata.observatory.cluster.follower import CoordinatorFeed
from strata.observatory.cluster.pins import PinBook
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.cluster.timelines import Timelines
from strata.observatory.cluster.verdicts import Verdicts
from strata.observatory.history.attempts import AttemptHistory
from strata.observatory.history.dashboards import DashboardBook
from strata.observatory.history.edits import RunEditor
from strata.observatory.history.heats import HeatBook
from strata.observatory.history.loader import History
from strata.observatory.history.logbook import LogBook
from strata.observatory.history.poller import Poller, PollerConfig
from strata.observatory.history.questions import Questions
from strata.observatory.history.series_reader import CurveReader
from strata.observatory.http.app import create_app
from strata.observatory.http.auth import Guard
from strata.observatory.http.exposition import Exposition
from strata.observatory.http.listener import HttpListener
from strata.observatory.http.parts import Parts
from strata.observatory.ingest.fence import Fence
from strata.observatory.ingest.intake import Intake
from strata.observatory.ingest.service import TelemetryServer
from strata.observatory.live.cache import SeriesCache
from strata.observatory.live.run_ends import RunEnds
from strata.observatory.live.runs import RunBook
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.snapshot import SnapshotBuilder
from strata.observatory.live.view import LiveView
from strata.observatory.media.keeper import MediaKeeper
from strata.observatory.media.reader import MediaReader
from strata.observatory.previews.files import FileReaders
from strata.observatory.previews.samples import SampleBook
from strata.observatory.records.fill import fill
from strata.observatory.spool.spool import Spool
from strata.observatory.store.base import Store
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.supervised import SupervisedStore
from strata.observatory.store.writer import StoreWriter
from strata.observatory.stream.broadcaster import Broadcaster
from strata.precedence import go_after_others
from strata.trust.access import find_access
from strata.trust.identity import Identity, ensure_identity

__all__ = ["Observatory", "run", "serve"]

_log = logging.getLogger(__name__)
_STORE_S = 8.0
# What PublishedCluster puts into the status.
_OF_THE_COORDINATOR = ("uptime", "generation", "term", "cluster_id", "started_at", "started_at_ms", "problem")


class Observatory:
    """One observability plane: HTTP, telemetry, store and caches over one data folder."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._leaders = Leaders(settings.coordinator_addr)
        self._clock = clock or SystemClock()
        self._started_at = self._clock.wall()
        self._teardown = Teardown()
        self._identity: Identity | None = None
        self._build()
        self.http = ""
        self.telemetry = ""

    def _build(self) -> None:
        settings, clock = self._settings, self._clock
        config = StoreConfig.from_settings(settings)
        series, cache, runs = SeriesTable(), SeriesCache(), RunBook(clock, max(settings.heartbeat_timeout, 10.0))
        snapshots = SnapshotBuilder(series, cache, runs)
        self._broadcaster = Broadcaster(lambda wanted: snapshots.build(wanted, self._broadcaster.epoch), clock)
        self._broadcaster.hold()
        self._live = LiveView(series, cache, runs, self._broadcaster, snapshots)
        self._aside = SetAside(clock, lambda findings: self._alerts.report(findings))
        on_damage = partial(self._aside.note, "spool")
        self._spool = Spool(settings.data_dir / "spool", on_damage=on_damage)
        self._store = SupervisedStore(config)
        self._writer = StoreWriter(self._spool, self._store, series, self._aside)
        self._media = MediaKeeper(settings, runs.deleted, clock, self._aside)
        fence = Fence(self._live.attempts, self._aside)
        self._intake = Intake(self._spool, self._take, clock, runs.deleted, fence, self._media.keep)
        self._logs = LogBook(self._store)
        self._history = History(self._store, self._writer, self._spool, series, cache)
        self._published = PublishedCluster(self._broadcaster, clock, self._own_status, self._aside)
        self._rules = RuleBook(settings.data_dir / "alert-rules.json", self._aside)
        url = settings.webhook_url
        own = Target(name="settings", kind="webhook", url=url) if url else None
        log = DeliveryLog(settings.data_dir / "alert-deliveries.json", self._aside)
        self._deliveries = Deliveries(self._rules, log, clock, own)
        self._alerts = AlertBook(self._broadcaster, clock, self._intake.accept, log, self._deliveries.offer)
        self._edits = RunEditor(self._store, self._writer, self._live, clock, self._media.drop)
        self._attempts = AttemptHistory(self._store, self._history, self._live)
        polling = PollerConfig(
            clock=clock,
            interval_s=settings.poll_interval_sec,
            edits=self._edits,
            attempts=self._attempts,
            on_backfilled=self._backfill,
            aside=self._aside,
        )
        self._poller = Poller(self._store, self._writer, self._history, self._live, polling)
        self._watcher = AlertWatcher(self._live, self._published, self._alerts, clock, settings.data_dir)
        facts = RunFactReader(self._live, self._published, self._store)
        self._rule_watcher = RuleWatcher(self._rules, self._deliveries, self._alerts, facts, clock)
        self._queue = BatchQueue(self._intake.accept, self._aside)
        self._archive = CheckpointArchive(self._published, self._queue, self._store)
        self._pins = PinBook(self._published, clock)
        self._timelines = Timelines(self._published, self._store, self._queue, clock, runs.of_task)
        self._verdicts = Verdicts(self._published, self._timelines, self._store, clock, runs.of_task)
        self._attempt_feed = AttemptFeed(self._published, self._live, self._queue, clock)
        self._exposition = Exposition(
            self._published, self._broadcaster, self._intake.counts, self._gauges, lambda: self._timelines.goodput
        )
        self._samples = SampleBook()
        self._files = FileReaders()
        runs.task_of = self._published.task_state
        runs.origin_of = self._published.origin_of
        self._ends = RunEnds(self._live, self._queue, clock, self._aside)
        steps = {"points": self._live.tick, "log lines": self._publish_logs, "cluster": self._published.publish}
        self._ticker = Ticker({**steps, "stream": self._broadcaster.flush}, self._aside)

    async def start(self) -> None:
        """Returns when the first request can be answered. What started before a failure is stopped again."""
        async with Teardown() as teardown:
            await self._start(teardown)
            self._teardown = teardown.pop_all()

    async def stop(self) -> None:
        await self._teardown.aclose()

    async def _start(self, teardown: Teardown) -> None:
        settings = self._settings
        open_data_dir(settings.data_dir)
        self._deliveries.log.load(self._clock.monotonic())
        self._rules.load()
        guard = Guard.from_settings(settings, lambda: self._published.followed.records.tokens.records)
        self._identity = ensure_identity(settings)
        sock = bind(settings.host, settings.http_port, flag="--http-port")
        teardown.callback(sock.close)
        check_free(settings.host, settings.telemetry_port, flag="--telemetry-port")
        self._spool.open()
        teardown.callback(self._spool.close)
        await self._store.start()
        teardown.step("the metric store", self._store.stop, _STORE_S)
        feed = CoordinatorFeed(self._leaders, find_access(settings), self._published)
        for part in (
            self._writer,
            self._intake,
            self._deliveries,  # until nobody finds anything more
            self._alerts,
            self._queue,
            self._pins,
            self._timelines,
            self._attempts,
            self._attempt_feed,
            self._ends,
            self._ticker,
            self._watcher,
            self._rule_watcher,
            self._poller,
            self._files,
            self._media,
            feed,
        ):
            await part.start()
            teardown.step(type(part).__name__, part.stop)
        await self._export(teardown)
        await self._serve_telemetry(teardown, guard)
        await self._serve_http(teardown, guard, sock)
        file = write_endpoint(settings.data_dir / "observatory.json", {"http": self.http, "telemetry": self.telemetry})
        teardown.callback(file.unlink, missing_ok=True)
        _log.info("dashboard at %s, telemetry at %s", self.http, self.telemetry)

    async def _export(self, teardown: Teardown) -> None:
        config = OtlpConfig.from_environment(environment())
        if config is not None:
            exporter = OtlpExporter(config, self._exposition.collect, self._clock)
            await exporter.start()
            teardown.step("the OpenTelemetry exporter", exporter.stop)

    async def _serve_telemetry(self, teardown: Teardown, guard: Guard) -> None:
        settings = self._settings
        server = TelemetryServer(self._intake, Gate(guard.proofs), self._live.runs.owner_of)
        teardown.step("the telemetry server", server.stop)
        tls = self._identity.context() if self._identity else None
        port = await server.start(settings.host, settings.telemetry_port, tls)
        self.telemetry = join_address(reachable_host(settings.host, settings.advertise), port)

    async def _serve_http(self, teardown: Teardown, guard: Guard, sock: socket.socket) -> None:
        settings = self._settings
        leaders = Leaders(settings.coordinator_addr)  # its own: what the feed follows is what is shown
        commands = CoordinatorCommands(leaders, find_access(settings), self._published.shown)
        teardown.step("the channel to the coordinator", commands.stop)
        curves = CurveReader(self._live, self._history, self._store, self._writer.flushed)
        parts = Parts(
            guard=guard,
            clock=self._clock,
            intake=self._intake,
            live=self._live,
            broadcaster=self._broadcaster,
            curves=curves,
            heats=HeatBook(self._live, self._store, self._clock, curves.settle),
            questions=Questions(self._store, self._writer.flushed, self._clock),
            logs=self._logs,
            published=self._published,
            commands=commands,
            alerts=self._alerts,
            rules=self._rules,
            rule_watcher=self._rule_watcher,
            deliveries=self._deliveries,
            samples=self._samples,
            files=self._files,
            media=MediaReader(self._store, self._media, self._writer.flushed),
            archive=self._archive,
            store=self._store,
            edits=self._edits,
            dashboards=DashboardBook(self._store, self._clock),
            pins=self._pins,
            timelines=self._timelines,
            verdicts=self._verdicts,
            exposition=self._exposition,
        )
        listener = HttpListener(create_app(parts), sock, self._identity)
        teardown.step("the HTTP server", listener.stop)
        teardown.callback(self._broadcaster.close)  # streams end first, or the listener would wait for them
        await listener.start()
        host = reachable_host(settings.host, settings.advertise)
        scheme = "https" if self._identity else "http"
        self.http = f"{scheme}://{join_address(host, sock.getsockname()[1])}"

    def _take(self, columns: Columns, end: int) -> None:
        """It is safe on disk already: whoever cannot show it must not keep the others from it."""
        self._writer.offer(columns, end)
        takers = {"live view": partial(self._live.take, columns, end), "logs": partial(self._logs.take, columns)}
        takers["samples"] = partial(self._samples.take, columns)
        for part, take in takers.items():
            with self._aside.guard(part, f"the batch before byte {end} of the spool"):
                take()

    async def _backfill(self, store: Store) -> None:
        await self._alerts.load(store)
        await self._timelines.load(store)

    def _publish_logs(self) -> None:
        news = self._logs.drain()
        if news.logs:
            self._broadcaster.publish("log", news, topic="logs")

    def _own_status(self) -> Status:
        """What /api/status says without the coordinator's part."""
        settings = self._settings
        return fill(
            Status,
            self._intake.counts,
            connected=False,
            address=self._leaders.current if self._published.connected else settings.coordinator_addr,
            version=__version__,
            storage_backend=settings.storage_backend,
            metric_store="clickhouse" if settings.ch_host else "embedded",
            metric_store_ready=self._store.ready and self._live.is_whole,
            metric_store_problem=self._store.problem or self._store.limits or self._writer.problem,
            spool_backlog_bytes=self._spool.backlog_bytes,
            spool_damage=fill(SpoolDamage, self._spool.damage),
            set_aside=self._aside.view(),
            refused_batches=self._intake.counts.unsafe,
            observatory_started_at_ms=round(self._started_at * 1000),
            **dict.fromkeys(_OF_THE_COORDINATOR),
        )

    def _gauges(self) -> dict[str, float]:
        return {
            "store_ready": float(self._store.ready),
            "store_restarts": float(self._store.restarts),
            "spool_backlog_bytes": float(self._spool.backlog_bytes),
            "inserted_points": float(self._writer.inserted_points),
            "series": float(len(self._live.series)),
            "runs": float(len(self._live.runs)),
            "unshown_points": float(self._live.unshown_points),
        }


async def serve(settings: Settings) -> None:
    """Runs until SIGTERM or SIGINT, then stops in order. A part that dies ends the whole, with its name."""
    stopping = asyncio.Event()
    died: list[str] = []
    loop = asyncio.get_running_loop()
    print_stacks_on_signal(loop)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)

    def on_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        loop.default_exception_handler(context)
        if FATAL in context:
            died.append(context[FATAL])
            stopping.set()

    loop.set_exception_handler(on_exception)
    observatory = Observatory(settings)
    await observatory.start()
    try:
        await stopping.wait()
    finally:
        end_surely(loop)
        await observatory.stop()
    if died:
        raise Internal(f"the observatory's part {died[0]!r} died")


def run(settings: Settings) -> None:
    """`serve` on a uvloop of its own; blocks."""
    keep_pandas_out()
    if settings.observatory_priority == "background":
        run_in_background()
    else:
        go_after_others()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings))
    finally:
        gc.freeze()  # the process ends: its last collections would look at every object of every library
