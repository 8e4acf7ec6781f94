"""Memory for asynchronous saves: a few buffers, touched once and used again, so that a save costs one memcpy and no
page fault.

Measured (512 MiB): 74 ms into reused pages, 225 ms into fresh ones.
"""

import mmap
import threading

import numpy as np

from strata.errors import Busy
from strata.storage.direct import new_memory

__all__ = ["StagingPool"]


class _Slot:
    """One anonymous mapping, replaced when a larger state comes. Its pages live as long as anybody looks at them."""

    def __init__(self) -> None:
        self._view = memoryview(b"")

    @property
    def capacity(self) -> int:
        return len(self._view)

    def view(self, size: int, *, touch: bool) -> memoryview:
        if size > self.capacity:
            self.release()  # before the larger one is made: both together could pass the budget
            self._view = new_memory(size)
            if touch:
                np.frombuffer(self._view, dtype=np.uint8)[:: mmap.PAGESIZE] = 0
        return self._view[:size]

    def release(self) -> None:
        self._view = memoryview(b"")


class StagingPool:
    """At most `slots` states are held at once; the second buffer exists only once two saves have overlapped.

    What happens when all are taken, or `max_bytes` would be passed, is the caller's choice in `take`: wait, or Busy
    at once.
    """

    def __init__(self, slots: int, max_bytes: int | None = None) -> None:
        self._max_bytes = max_bytes
        self._free = [_Slot() for _ in range(slots)]
        self._taken: dict[int, _Slot] = {}
        self._changed = threading.Condition()

    @property
    def allocated_bytes(self) -> int:
        with self._changed:
            return sum(slot.capacity for slot in [*self._free, *self._taken.values()])

    def take(self, size: int, *, wait: bool, touch: bool = True) -> memoryview:
        """A writable buffer of `size` bytes, to be given back with `give`. Without `touch` the pages of a new one come
        with the first write to each."""
        if self._max_bytes is not None and size > self._max_bytes:
            raise Busy(
                f"the state has {size} bytes, the staging memory may hold {self._max_bytes}",
                hint="Raise memory_budget_bytes, or use save() instead of save_async().",
            )
        with self._changed:
            if not wait and not self._fits(size):
                raise Busy("the staging memory is full of saves that are still being written", hint=_BUSY_HINT)
            self._changed.wait_for(lambda: self._fits(size))
            # The largest free buffer: one that fits already costs no page faults.
            slot = max(self._free, key=lambda each: each.capacity)
            if self._max_bytes is not None:
                for idle in self._free:
                    if idle is not slot:
                        idle.release()
            view = slot.view(size, touch=touch)
            self._free.remove(slot)
            self._taken[id(view)] = slot
            return view

    def give(self, view: memoryview) -> None:
        with self._changed:
            self._free.append(self._taken.pop(id(view)))
            self._changed.notify_all()

    def close(self) -> None:
        """Lets go of the memory of all idle buffers."""
        with self._changed:
            for slot in self._free:
                slot.release()

    def _fits(self, size: int) -> bool:
        taken = sum(slot.capacity for slot in self._taken.values())
        return bool(self._free) and (self._max_bytes is None or taken + size <= self._max_bytes)


_BUSY_HINT = "Save less often, or choose on_busy='block' or 'skip'."
