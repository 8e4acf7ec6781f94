"""A browser's model of the stream: snapshot plus deltas, resumed by event id: what a real one would show."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.support.described import the_api
from tests.support.waiting import PATIENCE


class StreamClient:
    """Reads /stream into `series` (id → points as (step, time, value)) until it is closed."""

    def __init__(self, http: str, *, params: dict[str, str] | None = None) -> None:
        self._http = http
        self._params = params or {}
        self._task: asyncio.Task[None] | None = None
        self.last_id: str | None = None
        self.heads: dict[int, dict[str, Any]] = {}
        self.points: dict[int, list[tuple[int, int, float | None]]] = {}
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.arrived: list[float] = []  # when each of `events` came, by the wall clock
        self.comments = 0
        self._reading = asyncio.Event()
        self._reading.set()

    async def open(self, *, resume: bool = True) -> None:
        cursor = self.last_id if resume else None
        connected = asyncio.Event()
        self._task = asyncio.create_task(self._read(cursor, connected))
        await asyncio.wait_for(connected.wait(), PATIENCE * 60)

    def move_to(self, http: str) -> None:
        """A server that was started again has another port; a browser's would be the same."""
        self._http = http

    def stall(self) -> None:
        """Reads nothing any more until `go_on`: the bytes back up to the server."""
        self._reading.clear()

    def go_on(self) -> None:
        self._reading.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, httpx.TransportError):  # also of a server that was killed
                await self._task

    async def wait_for(self, condition: Callable[[], bool], deadline_s: float = 60.0) -> None:
        async with asyncio.timeout(PATIENCE * deadline_s):
            while not condition():  # noqa: ASYNC110 - any condition over the model, checked as it grows
                await asyncio.sleep(0.01)

    def of(self, run_id: str, metric: str) -> list[tuple[int, int, float | None]]:
        for number, head in self.heads.items():
            if head["run_id"] == run_id and head["metric"] == metric:
                return self.points[number]
        return []

    def count(self, run_id: str) -> int:
        return sum(len(self.points[number]) for number, head in self.heads.items() if head["run_id"] == run_id)

    async def _read(self, cursor: str | None, connected: asyncio.Event) -> None:
        headers = {"Last-Event-ID": cursor} if cursor else {}
        async with (
            httpx.AsyncClient(timeout=httpx.Timeout(PATIENCE * 60), transport=_transport()) as client,
            client.stream("GET", f"{self._http}/stream", headers=headers, params=self._params) as response,
        ):
            assert response.status_code == 200, response.status_code
            assert response.headers["content-type"].startswith("text/event-stream")
            name, event_id = "", None
            async for line in response.aiter_lines():
                connected.set()
                await self._reading.wait()
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("id: "):
                    event_id = line[4:]
                elif line.startswith("data: "):
                    self._take(name, json.loads(line[6:]))
                    self.last_id = event_id
                elif line.startswith(":"):
                    self.comments += 1

    def _take(self, name: str, body: dict[str, Any]) -> None:
        the_api().check_event(name, body)
        self.events.append((name, body))
        self.arrived.append(time.time())
        if name == "snapshot":
            self.heads = {one["id"]: one for one in body["series"]}
            self.points = {
                one["id"]: list(zip(one["steps"], one["times"], one["values"], strict=True)) for one in body["series"]
            }
        elif name == "delta":
            for head in body["new_series"]:
                self.heads[head["id"]] = head
                self.points.setdefault(head["id"], [])
            for number, steps, times, values in body["points"]:
                self.points.setdefault(number, []).extend(zip(steps, times, values, strict=True))


def _transport() -> httpx.AsyncHTTPTransport:
    """With a small buffer: the kernel's own may hold 32 MB, and the server would not notice a client that stalls."""
    return httpx.AsyncHTTPTransport(socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)])
