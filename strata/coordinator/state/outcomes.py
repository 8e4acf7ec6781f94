"""How a barrier ended, and what each member is told of it."""

from collections.abc import Mapping
from dataclasses import fields
from itertools import count

import orjson

from strata.cluster.events import BarrierBroke, BarrierReleased
from strata.errors import BarrierBroken, BarrierExpired
from strata.types.barriers import BarrierKey, BarrierResult

__all__ = ["Outcome", "encode_outcome", "error_of", "key_of", "outcome_for", "places_in", "requests_of", "result_of"]

Outcome = BarrierReleased | BarrierBroke

_KINDS = (BarrierReleased, BarrierBroke)
_NAMES = {kind: [field.name for field in fields(kind) if field.name != "worker_ids"] for kind in _KINDS}


class _Places:
    """Everybody's place in the release that was asked about last: a thousand members ask one after the other."""

    def __init__(self) -> None:
        self._event: BarrierReleased | None = None
        self._places: dict[str, int] = {}

    def of(self, event: BarrierReleased) -> Mapping[str, int]:
        if event is not self._event:
            self._event = event
            self._places = dict(zip(event.worker_ids, count(1), strict=False))
        return self._places


class _Written:
    """The names of the last release, as JSON: at the next barrier they are most often the same."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._json = b"[]"

    def of(self, names: tuple[str, ...]) -> bytes:
        if names is not self._names:
            self._names, self._json = names, orjson.dumps(names)
        return self._json


_places, _written = _Places(), _Written()


def key_of(event: Outcome) -> BarrierKey:
    return BarrierKey(event.task_id, event.barrier_id, event.step)


def encode_outcome(event: Outcome) -> tuple[bytes, ...]:
    """In parts, the same as `encode_event` writes: of a thousand names in a twentieth of the time, because ranks wait
    for it. The names are the same bytes as before when the names are the same tuple."""
    rest = {name: getattr(event, name) for name in _NAMES[type(event)]}
    return b'{"worker_ids":', _written.of(event.worker_ids), b"," + orjson.dumps(rest)[1:]


def requests_of(event: Outcome) -> dict[str, str]:
    """Worker → the request that it came with."""
    if len(event.request_ids) == 1:
        return dict.fromkeys(event.worker_ids, event.request_ids[0])
    return dict(zip(event.worker_ids, event.request_ids, strict=True))


def places_in(event: BarrierReleased) -> Mapping[str, int]:
    """Returns each member's place in arrival order, from 1."""
    return _places.of(event)


def outcome_for(event: Outcome, worker_id: str) -> BarrierResult:
    """What one member is told: its result, or the error that says who is missing and why."""
    if isinstance(event, BarrierReleased):
        return result_of(event, places_in(event)[worker_id])
    raise error_of(event)


def result_of(event: BarrierReleased, place: int) -> BarrierResult:
    return BarrierResult(
        barrier_id=event.barrier_id,
        participants=len(event.worker_ids),
        arrival_order=place,
        generation=event.generation,
        absent=event.absent,
    )


def error_of(event: BarrierBroke) -> BarrierExpired | BarrierBroken:
    cls = BarrierExpired if event.expired else BarrierBroken
    verb = "expired" if event.expired else "is broken"
    return cls(f"barrier {event.barrier_id!r} {verb}: {event.reason}", missing=event.missing)
