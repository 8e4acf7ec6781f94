"""GET /stream: the one connection of a browser tab."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from strata.errors import InvalidArgument
from strata.observatory.answers.stream import StreamEvents
from strata.observatory.http.parts import Parts
from strata.observatory.stream.ring import Filter

__all__ = ["stream_router"]

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_DATA = {"schema": {"$ref": "#/components/schemas/StreamEvents"}}
_EVENTS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": _DATA}}}
_TOPICS = frozenset({"metrics", "state", "logs", "alerts"})


class _EventStream(StreamingResponse):
    """Closes its source when the client is gone, instead of leaving it to the garbage collector."""

    def __init__(self, events: AsyncGenerator[bytes], **options: Any) -> None:
        super().__init__(events, **options)
        self._events = events

    async def stream_response(self, send: Send) -> None:
        async with contextlib.aclosing(self._events):
            await super().stream_response(send)


def stream_router(parts: Parts) -> APIRouter:
    """SSE by hand: each event is encoded once for all clients, and nothing may buffer it on its way."""
    router = APIRouter(tags=["stream"])

    @router.get("/stream", response_class=Response, response_model=StreamEvents, responses=_EVENTS)
    @router.get("/api/stream", response_class=Response, response_model=StreamEvents, responses=_EVENTS)
    async def stream(
        runs: Annotated[str | None, Query(description="run ids, comma separated")] = None,
        topics: Annotated[str | None, Query(description="of metrics, state, logs, alerts")] = None,
        cursor: Annotated[str | None, Query(description="the last event id that was seen")] = None,
        sparse: Annotated[bool, Query(description="outline many series; GET /api/series has their points")] = False,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> Response:
        wanted = Filter(runs=_names(runs), topics=_topics(topics), sparse=sparse)
        parts.broadcaster.check_room()
        events = parts.broadcaster.stream(wanted, last_event_id or cursor)
        return _EventStream(events, media_type="text/event-stream", headers=_HEADERS)

    return router


def _names(text: str | None) -> frozenset[str] | None:
    return frozenset(name for name in text.split(",") if name) if text is not None else None


def _topics(text: str | None) -> frozenset[str] | None:
    names = _names(text)
    if names is not None and not names <= _TOPICS:
        raise InvalidArgument(f"topics {sorted(names - _TOPICS)} are unknown", hint=f"Allowed: {sorted(_TOPICS)}.")
    return names
