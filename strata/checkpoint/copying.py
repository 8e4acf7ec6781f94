"""The copy of a state that a script goes on computing with: in slices, by a thread behind the training, and by whoever
is about to write to the arrays. Whoever writes finds every slice copied, so no state is ever half old and half new.
"""

import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator

import numpy as np

from strata.checkpoint import faults
from strata.checkpoint.arrays import ArraySource
from strata.checkpoint.image import Image
from strata.errors import CheckpointTorn

__all__ = ["SLICE_BYTES", "SlicedCopy", "plan_slices"]

SLICE_BYTES = 16 << 20
"""A few milliseconds of copying: what a writer may have to wait for when the thread is in the middle of one."""

_Slice = list[tuple[str, int, int]]  # (array, first byte, end): together about SLICE_BYTES


def plan_slices(sizes: Iterable[tuple[str, int]], slice_bytes: int = SLICE_BYTES) -> Iterator[_Slice]:
    """Arrays in order, large ones cut, small ones together."""
    pieces: _Slice = []
    room = slice_bytes
    for name, nbytes in sizes:
        start = 0
        while start < nbytes:
            stop = min(nbytes, start + room)
            pieces.append((name, start, stop))
            room -= stop - start
            start = stop
            if room == 0:
                yield pieces
                pieces, room = [], slice_bytes
    if pieces:
        yield pieces


class SlicedCopy:
    """An image on its way into staging memory. What is not named in `later` is copied by the constructor."""

    def __init__(
        self, image: Image, target: memoryview, later: Collection[str], *, slice_bytes: int = SLICE_BYTES
    ) -> None:
        self._image = image
        self._target = target
        self._versions = {name: image.sources[name].version for name in later}
        image.copy_into(target, without=later)
        sizes = ((name, record.nbytes) for name, record in image.tensors.items() if name in later)
        self._slices = deque(plan_slices(sizes, slice_bytes))
        self._changed = threading.Condition()
        self._under_way = 0
        self._released = False  # a writer was told to go on: what changes from then on is not ours
        self._error: BaseException | None = None

    @property
    def done(self) -> bool:
        with self._changed:
            return not self._slices and not self._under_way

    def run(self) -> None:
        """Copies slices until none is left. Several threads may do so at once."""
        while True:
            with self._changed:
                if not self._slices:
                    return
                pieces = self._slices.popleft()
                self._under_way += 1
            error: BaseException | None = None
            try:
                faults.reach("copying")
                for name, start, stop in pieces:
                    self._copy(name, start, stop)
            except BaseException as raised:  # kept for the save, which fails of it
                error = raised
            with self._changed:
                self._under_way -= 1
                if error is not None:
                    self._fail(error)
                self._changed.notify_all()

    def release(self) -> None:
        """Returns when the arrays may be written to: all is copied, or the save is lost. Never raises: a training step
        must not end because of a save."""
        self._finish()
        with self._changed:
            self._look()
            self._released = True

    def join(self) -> None:
        """Returns when all is copied; raises what went wrong."""
        self._finish()
        self.check()

    def end(self) -> None:
        """Gives up what is not copied yet. Nobody writes to the staging memory afterwards: it can be used again."""
        with self._changed:
            self._slices.clear()
            self._changed.wait_for(lambda: not self._under_way)

    def check(self) -> None:
        """Raises when a copy failed, or somebody wrote to an array while nobody was allowed to."""
        with self._changed:
            self._look()
            if self._error is not None:
                raise self._error

    def _finish(self) -> None:
        self.run()
        with self._changed:
            self._changed.wait_for(lambda: not self._slices and not self._under_way)

    def _look(self) -> None:
        if self._released or self._error is not None:
            return
        for name, version in self._versions.items():
            if self._image.sources[name].version != version:
                self._fail(
                    CheckpointTorn(
                        f"{name!r} was written to before its copy was released, and not by the optimizer's step",
                        hint="Save without `until` (strata.training: without `sliced`), which copies at once.",
                    )
                )
                return

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._slices.clear()

    def _copy(self, name: str, start: int, stop: int) -> None:
        offset = self._image.tensors[name].offset
        source: ArraySource = self._image.sources[name]
        # Not memoryview's own assignment, which would hold Python's lock for as long as it takes.
        np.copyto(
            np.frombuffer(self._target[offset + start : offset + stop], dtype=np.uint8),
            np.frombuffer(source.view()[start:stop], dtype=np.uint8),
        )
