"""Media on their way out of a training loop: bounded in memory, made into files by a thread of its own, and sent apart
from the points, which never wait for a picture. What does not fit is dropped, counted and said.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from strata.client.batches import new_batch
from strata.client.telemetry import Outbox
from strata.protocol.generated import telemetry_pb2 as tm
from strata.types.names import check_metric
from strata.worker.media.base import Entry, FileMedia, Media, together
from strata.worker.media.unfit import Unfit, shown

__all__ = ["MAX_WAITING_BYTES", "MediaQueue"]

MAX_WAITING_BYTES = 128 << 20
_MAX_WAITING = 4_096
_ENTRY_BYTES = 1_000  # of an entry's own, beside what it holds
_BATCH_BYTES, _BATCH_ENTRIES = 1 << 20, 200


class _Waiting(NamedTuple):
    name: Any
    media: Sequence[Media]
    step: int
    time_ns: int
    num_bytes: int


Point = Callable[[str, Entry, int, int], tm.TextPoint]
Refuse = Callable[[str, str, int], None]


class MediaQueue:
    """`outbox` is opened with the first medium: most runs have none. `point` makes the message of an entry, `refuse`
    counts what is lost and says why."""

    def __init__(self, outbox: Callable[[], Outbox], point: Point, refuse: Refuse) -> None:
        self._open = outbox
        self._outbox: Outbox | None = None
        self._point = point
        self._refuse = refuse
        self._waiting: deque[_Waiting] = deque()
        self._num_bytes = 0
        self._changed = threading.Condition()
        self._making = threading.Lock()
        self._closing = False
        self._thread: threading.Thread | None = None

    @property
    def dropped(self) -> int:
        return self._outbox.dropped if self._outbox is not None else 0

    def put(self, name: Any, media: Sequence[Media], step: int, time_ns: int) -> None:
        """Called by the training thread."""
        frozen = [one.frozen() for one in media]
        size = sum(one.num_bytes for one in frozen) + _ENTRY_BYTES
        with self._changed:
            if self._num_bytes + size > MAX_WAITING_BYTES or len(self._waiting) >= _MAX_WAITING:
                full = f"{len(self._waiting)} media of {self._num_bytes:,} bytes wait already, this one has {size:,}"
                why = f"{full}; at most {MAX_WAITING_BYTES >> 20} MiB wait: log fewer or smaller ones"
            else:
                why = ""
                self._waiting.append(_Waiting(name, frozen, step, time_ns, size))
                self._num_bytes += size
                self._start()
                self._changed.notify_all()
        if why:
            self._refuse(f"media {shown(name)}", why, 1)

    def secure(self) -> bool:
        """Makes all that was put safe from a kill -9 of this process."""
        self._make_all()
        return self._outbox is None or self._outbox.secure()

    def close(self, timeout_s: float) -> bool:
        """Delivers what there is, or leaves it in the folder. Says whether all was delivered."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        return self._outbox is None or self._outbox.close(timeout_s)

    # --- behind the training

    def _start(self) -> None:
        if self._thread is None:
            self._outbox = self._open()
            self._thread = threading.Thread(target=self._run, name="strata-media", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._waiting)
                closing = self._closing
            self._make_all()
            if closing:
                return

    def _make_all(self) -> None:
        """Small ones share a message."""
        with self._making:  # one at a time, so that they leave in order
            batch, size = new_batch(), 0
            while (item := self._next()) is not None:
                for point in self._points(item):
                    batch.texts.append(point)
                    size += point.ByteSize()
                with self._changed:
                    self._num_bytes -= item.num_bytes
                if size > _BATCH_BYTES or len(batch.texts) >= _BATCH_ENTRIES:
                    self._send(batch)
                    batch, size = new_batch(), 0
            self._send(batch)

    def _next(self) -> _Waiting | None:
        with self._changed:
            return self._waiting.popleft() if self._waiting else None

    def _send(self, batch: tm.Batch) -> None:
        if batch.texts and self._outbox is not None:
            self._outbox.put(batch)

    def _points(self, item: _Waiting) -> Iterator[tm.TextPoint]:
        """One that cannot be made does not take the others with it."""
        for name, media in _entries(item.name, item.media):
            try:
                check_metric(name)
                entry = together(media) if all(isinstance(one, FileMedia) for one in media) else media[0].entry()
                for note in entry.notes:
                    self._refuse(f"a part of {shown(name)}", note, 0)
                point = self._point(name, entry, item.step, item.time_ns // 1_000_000)
            except Unfit as error:
                self._refuse(f"media {shown(name)}", f"it {error}", 1)
            except Exception as error:  # a name that breaks the rules, an object of somebody's own
                self._refuse(f"media {shown(name)}", f"it cannot be kept: {error}", 1)
            else:
                yield point


def _entries(name: Any, media: Sequence[Media]) -> list[tuple[Any, list[Any]]]:
    """A list of files of one kind is one entry; others are one each."""
    if len(media) == 1 or (isinstance(media[0], FileMedia) and all(type(one) is type(media[0]) for one in media)):
        return [(name, list(media))]
    return [(f"{name}/{place}", [one]) for place, one in enumerate(media)]
