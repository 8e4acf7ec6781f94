"""A run as another tracker kept it: what is known of it, its points, and what could not be read."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from strata.errors import DataError, InvalidArgument
from strata.observatory.batch.door import LATEST_MS
from strata.observatory.transfer.batches import Had, ImportedPoint, check_had, to_batches
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.labels import MAX_LABEL, MAX_NOTES, MAX_TAGS, check_tag
from strata.types.metrics import SeriesKey

__all__ = ["ImportedRun", "flattened", "parsed", "run_batches"]

_KEEP_CHARS = 200_000  # of a config: a batch that the observatory refuses helps nobody
_KEEP_SUMMARY = 64 * 1024
_MAX_DEPTH = 20  # of a dict in a row


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


def run_batches(run: ImportedRun, had: Mapping[SeriesKey, Had], *, end_at_ms: int | None = None) -> Iterator[Batch]:
    """What the run is, if its file says so, then its points, without those that the store `had`, and with `end_at_ms`
    that it is over. A part that cannot be read to its end ends there; its error is raised after all the others are
    read. Raises DataError before the first batch when the store had other points than these."""
    known = run.unread.copy()
    check_had((point for read in run.parts.values() for point in _points(read, [])), run.run_id, had)
    run.unread.clear()  # what was counted while looking is counted again
    run.unread.update(known)
    is_described = bool(run.started_ms or run.name or run.config)
    exists = is_described or bool(had)
    if is_described:
        yield _description(run)
    left = Counter({key: stored.points for key, stored in had.items()})
    errors: list[DataError] = []
    for source, read in run.parts.items():
        for batch in to_batches(_points(read, errors), run.run_id, source, left, run.unread):
            exists = True
            yield batch
    if exists and end_at_ms is not None and not (is_described and run.status):
        yield _end(run, end_at_ms)
    if errors:
        raise errors[0]


def _points(read: Callable[[], Iterable[ImportedPoint]], errors: list[DataError]) -> Iterator[ImportedPoint]:
    try:
        yield from read()
    except DataError as error:
        errors.append(error)
    except OSError as error:
        errors.append(DataError(f"{error.filename} cannot be read: {error.strerror or error}"))


def _description(run: ImportedRun) -> Batch:
    """Only what the observatory takes: one odd tag or summary must not cost the run its points."""
    name = blake2b("\0".join([run.run_id, *run.parts]).encode(errors="replace"), digest_size=12).hexdigest()
    said = Batch(batch_id=f"import-{name}-run")
    started_ms, ended_ms = (_moment(run, at) for at in (run.started_ms, run.ended_ms))
    at_ms = ended_ms or started_ms
    labels = {one: _text(run, one, getattr(run, one), MAX_LABEL) for one in ("project", "name", "group", "job_type")}
    said.runs.add(
        run_id=run.run_id,
        **labels,
        notes=_text(run, "notes", run.notes, MAX_NOTES),
        tags=_tags(run),
        config_json=_config(run),
        started_at_ms=started_ms,
        updated_at_ms=at_ms,
        status=run.status,
        reason=run.reason,
    )
    for key, value in run.summary.items():
        text = _json(run, key, value)
        if text is None:
            continue
        if len(text) > _KEEP_SUMMARY or len(key) > MAX_LABEL:
            run.unread["summary values that are too long"] += 1
        else:
            said.summaries.add(run_id=run.run_id, name=key, value_json=text, event_time_ms=at_ms)
    return said


def _end(run: ImportedRun, at_ms: int) -> Batch:
    """Nobody logs to it: without a word it would count as running until it has been silent for minutes."""
    said = Batch(batch_id=f"import-{blake2b(run.run_id.encode(), digest_size=12).hexdigest()}-end-{at_ms}")
    said.runs.add(
        run_id=run.run_id, status=run.status or "finished", reason=run.reason or "imported", updated_at_ms=at_ms
    )
    return said


def _moment(run: ImportedRun, at_ms: int | None) -> int:
    if at_ms is None or 0 <= at_ms < LATEST_MS:
        return at_ms or 0
    run.unread["times before 1970 or after 2200"] += 1
    return 0


def _text(run: ImportedRun, what: str, text: str, limit: int) -> str:
    """As much of it as is kept; what is cut or replaced is said."""
    kept = text.encode(errors="replace").decode()[:limit]
    if kept != text:
        run.unread[f"{what} as it was: it is cut to {limit} characters, or holds half a character"] += 1
    return kept


def _tags(run: ImportedRun) -> list[str]:
    """Each once. What is no tag here is made one, and said."""
    kept: dict[str, None] = {}
    for tag in run.tags:
        short = " ".join("".join(char if char.isprintable() else " " for char in tag).split())[:64].strip()
        try:
            kept[check_tag(short)] = None
        except InvalidArgument:
            run.unread[f"the tag {tag[:80]!r}"] += 1
            continue
        if short != tag:
            run.unread[f"the tag {tag[:80]!r}, which is {short!r} here"] += 1
    if len(kept) > MAX_TAGS:
        run.unread[f"tags beyond {MAX_TAGS}"] += len(kept) - MAX_TAGS
    return list(kept)[:MAX_TAGS]


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


def flattened(row: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    """The numbers of a row; those of a dict in it as `outer.inner`. Truth is 1 or 0."""
    for name, value in row.items():
        if isinstance(value, Mapping):
            if depth < _MAX_DEPTH:
                yield from flattened(value, f"{before}{name}.", depth + 1)
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
