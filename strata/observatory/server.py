"""The observatory's composition root: builds every part, starts them in order, serves until told to stop, stops in
reverse. The only place that knows all parts; none of them knows this one.
"""

import asyncio
import contextlib
import logging
import signal
from typing import Any

import uvloop

from strata import __version__
from strata.clock import Clock, SystemClock
from strata.config import Settings
from strata.errors import InvalidConfig
from strata.network import bind, shown_address, write_endpoint
from strata.observatory.http.app import create_app
from strata.observatory.http.auth import Guard
from strata.observatory.http.listener import HttpListener
from strata.observatory.http.parts import Parts

__all__ = ["Observatory", "run", "serve"]

_log = logging.getLogger(__name__)


class Observatory:
    """One observability plane: HTTP, telemetry, store and caches over one data folder."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._started_at = self._clock.wall()
        self._stack = contextlib.AsyncExitStack()
        self.http = ""
        self.telemetry = ""

    async def start(self) -> None:
        """Returns when the first request can be answered. What started before a failure is stopped again."""
        async with contextlib.AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()

    async def stop(self) -> None:
        await self._stack.aclose()

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        settings = self._settings
        _prepare_data_dir(settings)
        guard = Guard.from_settings(settings)
        sock = bind(settings.host, settings.http_port, flag="--http-port")
        stack.callback(sock.close)
        listener = HttpListener(create_app(Parts(guard=guard, status=self.status)), sock)
        stack.push_async_callback(listener.stop)
        await listener.start()
        self.http = f"http://{shown_address(sock)}"
        file = write_endpoint(settings.data_dir / "observatory.json", {"http": self.http, "telemetry": self.telemetry})
        stack.callback(file.unlink, missing_ok=True)
        _log.info("dashboard at %s", self.http)

    def status(self) -> dict[str, Any]:
        """GET /api/status."""
        return {
            "connected": False,
            "address": self._settings.coordinator_addr,
            "uptime": None,
            "version": __version__,
            "storage_backend": self._settings.storage_backend,
            "metric_store": "clickhouse" if self._settings.ch_host else "embedded",
            "generation": None,
            "started_at": None,
            "started_at_ms": None,
        }


async def serve(settings: Settings) -> None:
    """Runs until SIGTERM or SIGINT, then stops in order."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    observatory = Observatory(settings)
    await observatory.start()
    try:
        await stopping.wait()
    finally:
        await observatory.stop()


def run(settings: Settings) -> None:
    """`serve` on a uvloop of its own; blocks."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings))


def _prepare_data_dir(settings: Settings) -> None:
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidConfig(
            f"data_dir {settings.data_dir} cannot be used: {error.strerror}", hint="Choose another with --data-dir."
        ) from None
