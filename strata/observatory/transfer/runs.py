"""A run as another tracker kept it: what is known of it, its points, and what could not be read."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from strata.observatory.transfer.batches import ImportedPoint, to_batches
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import SeriesKey

__all__ = ["ImportedRun", "flattened", "parsed", "run_batches"]

_KEEP_CHARS = 200_000  # of a config: a batch that the observatory refuses helps nobody


@dataclass(slots=True, kw_only=True)
class ImportedRun:
    """`parts` reads the points of each file; its name there, with the size, makes the ids of batches, by which a
    repeated import is known. `unread` counts what could not be read, by what it was."""

    run_id: str
    parts: Mapping[str, Callable[[], Iterable[ImportedPoint]]] = field(default_factory=dict)
    project: str = ""
    name: str = ""
    group: str = ""
    job_type: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    started_ms: int | None = None
    ended_ms: int | None = None
    status: str = ""
    reason: str = ""
    unread: Counter[str] = field(default_factory=Counter)


def run_batches(run: ImportedRun, had: Counter[SeriesKey]) -> Iterator[Batch]:
    """What the run is, if its file says so, then its points, without as many of each series as the store `had`."""
    if run.started_ms or run.name or run.config:
        yield _description(run)
    left = had.copy()
    for source, points in run.parts.items():
        yield from to_batches(points(), run.run_id, source, left, run.unread)


def _description(run: ImportedRun) -> Batch:
    name = blake2b("\0".join([run.run_id, *run.parts]).encode(), digest_size=12).hexdigest()
    said = Batch(batch_id=f"import-{name}-run")
    at_ms = run.ended_ms or run.started_ms or 0
    said.runs.add(
        run_id=run.run_id,
        project=run.project,
        name=run.name,
        group=run.group,
        job_type=run.job_type,
        notes=run.notes,
        tags=run.tags,
        config_json=_config(run),
        started_at_ms=run.started_ms or 0,
        updated_at_ms=at_ms,
        status=run.status,
        reason=run.reason,
    )
    for key, value in run.summary.items():
        text = _json(run, key, value)
        if text is not None:
            said.summaries.add(run_id=run.run_id, name=key, value_json=text, event_time_ms=at_ms)
    return said


def _json(run: ImportedRun, key: str, value: Any) -> str | None:
    """None for what no JSON of ours can hold, such as an integer of 70 bits or half of a character; it is counted."""
    try:
        orjson.dumps(key)
        return orjson.dumps(value).decode()
    except TypeError as error:
        run.unread[f"{key[:80]!r}: {error}"] += 1
        return None


def _config(run: ImportedRun) -> str:
    config = {key: value for key, value in run.config.items() if _json(run, key, value) is not None}
    text = orjson.dumps(config).decode() if config else ""
    if len(text) <= _KEEP_CHARS:
        return text
    run.unread[f"a config of {len(text):,} characters"] += 1
    return ""


def flattened(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of a row; those of a dict in it as `outer.inner`. Truth is 1 or 0."""
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{before}{name}.")
        elif isinstance(value, int | float) or value in ("NaN", "Infinity", "-Infinity"):
            with contextlib.suppress(OverflowError):  # an integer of more than 1,023 bits; who counts finds no number
                yield f"{before}{name}", float(value)


def parsed(text: str) -> Any:
    """A value that was kept as text: a number or a truth where it is one, so that runs can be filtered by it."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"True": True, "False": False, "None": None}.get(text, text)
    return value if isinstance(value, int | float) or value is None else text
