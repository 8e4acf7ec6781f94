"""What a sender may say beside its points: checked once, where a batch comes in. What lies in the spool was accepted,
by this release or an earlier one, and is not asked again.
"""

from strata.errors import InvalidArgument
from strata.protocol.generated.telemetry_pb2 import Batch, RunInfo, TextPoint
from strata.types.labels import MAX_NOTES, MAX_TAGS, check_tag
from strata.types.media import MAX_ENTRY_BYTES, MAX_ENTRY_FILES, check_file_name
from strata.types.metrics import MAX_STEP, NO_DEVICE, WORLDS, SeriesKey, check_series
from strata.types.names import check_name
from strata.types.shown import check_path, check_text

__all__ = ["LATEST_MS", "check_extras"]

LATEST_MS = 7_258_118_400_000  # the year 2200; DateTime64 ends soon after
_MAX_WORD = 255
_MAX_TEXT = 64 * 1024


def check_extras(message: Batch) -> None:
    """Log lines, runs, events, checkpoints and attempts: short names, and times that a calendar knows."""
    for line in message.logs:
        for name in ("source", "task_id", "worker_id", "host", "stream"):
            check_text(f"{name} of a log line", getattr(line, name), _MAX_WORD)
    for run in message.runs:
        for name in ("task_id", "status"):
            check_text(f"{name} of run {run.run_id[:80]!r}", getattr(run, name), _MAX_WORD)
        _check_time(f"started_at_ms of run {run.run_id[:80]!r}", run.started_at_ms)
        _check_time(f"updated_at_ms of run {run.run_id[:80]!r}", run.updated_at_ms)
        _check_labels(run)
    for event in message.events:
        for name in ("id", "kind", "severity", "run_id", "task_id", "worker_id"):
            check_text(f"{name} of an event", getattr(event, name), _MAX_WORD)
        check_text("message of an event", event.message, _MAX_TEXT)
        _check_time("event_time_ms of an event", event.event_time_ms)
    for row in message.checkpoints:
        for name in ("id", "run_id", "worker_id", "status"):
            check_text(f"{name} of a checkpoint", getattr(row, name), _MAX_WORD)
        check_path("path of a checkpoint", row.path)
        check_text("reason of a checkpoint", row.reason, _MAX_TEXT)
        _check_time("event_time_ms of a checkpoint", row.event_time_ms)
    for start in message.attempts:
        for name in ("run_id", "metric"):
            check_text(f"{name} of an attempt", getattr(start, name), _MAX_WORD)
        if start.device > NO_DEVICE or start.step > MAX_STEP or start.world >= WORLDS:
            raise InvalidArgument(f"an attempt of run {start.run_id[:80]!r} has a step, device or world beyond limits")
        _check_time("event_time_ms of an attempt", start.event_time_ms)
    for value in message.summaries:
        check_name("run_id", value.run_id)
        check_text(f"a summary name of run {value.run_id!r}", value.name, _MAX_WORD)
        check_text(f"summary {value.name!r} of run {value.run_id!r}", value.value_json, _MAX_TEXT)
        _check_time(f"event_time_ms of summary {value.name!r}", value.event_time_ms)
    for text in message.texts:
        check_series(SeriesKey(text.run_id, text.metric, text.host, text.rank))
        check_text(f"kind of {text.metric!r}", text.kind, _MAX_WORD)
        check_text(f"text of {text.metric!r}", text.text, _MAX_TEXT)
        if text.step > MAX_STEP:
            raise InvalidArgument(f"step {text.step} of {text.metric!r} is beyond 2^53")
        _check_time(f"event_time_ms of {text.metric!r}", text.event_time_ms)
        _check_files(text)
    for sample in message.samples:
        for name in ("dataset_id", "worker_id"):
            check_text(f"{name} of a sample", getattr(sample, name), _MAX_WORD)


def _check_files(text: TextPoint) -> None:
    for file in text.files:
        check_file_name(file.name)
    size = sum(len(file.content) for file in text.files)
    if len(text.files) > MAX_ENTRY_FILES or size > MAX_ENTRY_BYTES:
        raise InvalidArgument(
            f"{text.metric!r} has {len(text.files)} files of {size} bytes at step {text.step}",
            hint=f"At most {MAX_ENTRY_FILES} files of {MAX_ENTRY_BYTES} bytes together are kept.",
        )


def _check_labels(run: RunInfo) -> None:
    what = f"of run {run.run_id[:80]!r}"
    if len(run.tags) > MAX_TAGS:
        raise InvalidArgument(f"tags {what} are {len(run.tags)}, at most {MAX_TAGS} are kept")
    for tag in run.tags:
        check_tag(tag)
    for name in ("group", "job_type"):
        check_text(f"{name} {what}", getattr(run, name), _MAX_WORD)
    check_text(f"notes {what}", run.notes, MAX_NOTES)


def _check_time(what: str, milliseconds: int) -> None:
    if not 0 <= milliseconds < LATEST_MS:
        raise InvalidArgument(f"{what} is {milliseconds}, it must be Unix milliseconds between 1970 and 2200")
