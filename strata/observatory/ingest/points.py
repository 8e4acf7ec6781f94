"""Points as JSON, for anyone with curl: turned into the same batch that the SDK sends."""

import json
from typing import Any

from strata.errors import InvalidArgument
from strata.observatory.records.times import parse_time
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import NO_DEVICE, SeriesKey, check_series
from strata.types.shown import check_text

__all__ = ["BODY_SCHEMA", "from_json"]

_WHOLE = {"type": "integer", "minimum": 0}
_FIELDS: dict[str, Any] = {
    "metric": {"type": "string"},
    "value": {"type": ["number", "string", "null"], "description": "null and NaN are counted as bad values"},
    "step": _WHOLE,
    "event_time": {"type": ["number", "string", "null"], "description": "Unix seconds or ISO 8601; else now"},
    "host": {"type": ["string", "null"]},
    "rank": _WHOLE,
    "device": {"type": ["integer", "null"], "minimum": 0},
    "unit": {"type": ["string", "null"]},
    "tags": {"type": ["object", "string", "null"]},
}
_POINT = {
    "type": "object",
    "required": ["metric", "value"],
    "additionalProperties": False,
    "properties": _FIELDS,
}
_BODY_FIELDS: dict[str, Any] = {
    "points": {"type": "array", "minItems": 1, "items": _POINT},
    "batch_id": {"type": ["string", "null"], "description": "the same for every retry of one batch"},
}
# What `from_json` reads, for the API's description. It is not parsed by a model: a body may hold 100,000 points.
BODY_SCHEMA = {
    "type": "object",
    "required": ["points"],
    "additionalProperties": False,
    "properties": _BODY_FIELDS,
}


def from_json(run_id: str, body: dict[str, Any], now_ms: int) -> Batch:
    """`POST /api/runs/{run}/points` as a batch, so that curl and the SDK share one path from here on."""
    points = body.get("points")
    if not isinstance(points, list) or not points:
        raise InvalidArgument("points is missing or empty", hint='Send {"points": [{"metric", "step", "value"}, …]}.')
    _check_known(body, _BODY_FIELDS)
    message = Batch(batch_id=check_text("batch_id", _text("batch_id", body.get("batch_id")), 128))
    known: dict[tuple[Any, ...], int] = {}
    for number, point in enumerate(points):
        try:
            _add_point(message, known, run_id, point, now_ms)
        except InvalidArgument as error:
            raise InvalidArgument(f"points[{number}]: {error.message}", hint=error.hint) from None
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            reason = f"{error.args[0]} is missing" if isinstance(error, KeyError) else error
            raise InvalidArgument(f"points[{number}]: {reason}") from None
    return message


def _add_point(message: Batch, known: dict[tuple[Any, ...], int], run_id: str, point: Any, now_ms: int) -> None:
    if not isinstance(point, dict):
        raise TypeError("a point is an object")
    _check_known(point, _FIELDS)
    tags = point.get("tags")
    if tags and not isinstance(tags, str):
        tags = json.dumps(tags, separators=(",", ":"), sort_keys=True)
    rank, device = point.get("rank"), point.get("device")
    identity = (
        _text("metric", point["metric"]),
        _text("host", point.get("host")),
        0 if rank is None else _whole("rank", rank),
        NO_DEVICE if device is None else _whole("device", device),
        _text("unit", point.get("unit")),
        tags or "",
    )
    index = known.get(identity)
    if index is None:
        index = known[identity] = len(known)
        key = check_series(SeriesKey(run_id, *identity[:4]))
        message.series.add(index=index, unit=identity[4], tags_json=identity[5], **key._asdict())
    step = _whole("step", point.get("step", 0))
    when = point.get("event_time")
    message.points.series.append(index)
    message.points.step.append(step)
    message.points.value.append(_number(point["value"]))
    message.points.event_time_ms.append(now_ms if when is None else round(parse_time("event_time", when) * 1000))


def _check_known(given: dict[str, Any], fields: dict[str, Any]) -> None:
    """A field that nobody reads is a mistyped one: `steps` would put every point at step 0."""
    if not given.keys() <= fields.keys():
        unknown = str(next(name for name in given if name not in fields))[:80]
        raise InvalidArgument(f"there is no field {unknown!r}", hint=f"The fields are {', '.join(fields)}.")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str | None):
        raise InvalidArgument(f"{name} is {str(value)[:80]!r}, it must be a text")
    return value or ""


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or value < 0:
        raise ValueError(f"{name} is {str(value)[:80]!r}, it must be a whole number, 0 or more")
    return int(value)


def _number(value: Any) -> float:
    """JSON has no NaN: null and the usual spellings stand for it."""
    if value is None:
        return float("nan")
    if isinstance(value, bool):
        raise TypeError("value is a boolean, it must be a number")
    return float(value)
