"""A host's cable to the bridge, in the test's own process: two TAP devices, and a thread that carries frames between
them as slowly, as lossily and in such directions as it is told. Not every kernel has netem.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import threading
import time
from typing import Literal

__all__ = ["Cable"]

_TUNSETIFF = 0x400454CA
_TAP_WITHOUT_HEADER = 0x0002 | 0x1000
_FRAME_BYTES = 65_536
_LOOK_S = 0.2


def _open_tap(name: str) -> int:
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, _TUNSETIFF, struct.pack("16sH", name.encode(), _TAP_WITHOUT_HEADER))
    return end


class Cable:
    """From the device `bridge` to the device `host`. The devices are there as long as it is not closed."""

    def __init__(self, bridge: str, host: str) -> None:
        self._ends = (_open_tap(bridge), _open_tap(host))
        self._carries = dict.fromkeys(self._ends, True)
        self._delay_s, self._loss = 0.0, 0.0
        self._chance = random.Random(18)  # reproducible
        self._under_way: list[tuple[float, int, int, bytes]] = []
        self._count = 0
        self._closing = False
        self._thread = threading.Thread(target=self._carry, name=f"cable {host}", daemon=True)
        self._thread.start()

    def cut(self, which: Literal["both", "to", "from"] = "both") -> None:
        """Nothing gets to the host, or comes from it, any more; nobody is told."""
        bridge, host = self._ends
        self._carries = {bridge: which == "from", host: which == "to"}

    def mend(self) -> None:
        self._carries = dict.fromkeys(self._ends, True)
        self._delay_s, self._loss = 0.0, 0.0

    def worsen(self, *, delay_s: float, loss: float) -> None:
        """Every frame takes that long, each way; that part of them is lost."""
        self._delay_s, self._loss = delay_s, loss

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        for end in self._ends:
            os.close(end)

    def _carry(self) -> None:
        while not self._closing:
            wait_s = self._under_way[0][0] - time.monotonic() if self._under_way else _LOOK_S
            for end in select.select(self._ends, [], [], min(max(wait_s, 0.0), _LOOK_S))[0]:
                self._take(end)
            while self._under_way and self._under_way[0][0] <= time.monotonic():
                _, _, end, frame = heapq.heappop(self._under_way)
                _write(end, frame)

    def _take(self, end: int) -> None:
        try:
            frame = os.read(end, _FRAME_BYTES)
        except OSError:  # the device is down
            return
        if not self._carries[end] or self._chance.random() < self._loss:
            return
        self._count += 1
        other = self._ends[1 - self._ends.index(end)]
        heapq.heappush(self._under_way, (time.monotonic() + self._delay_s, self._count, other, frame))


def _write(end: int, frame: bytes) -> None:
    try:
        os.write(end, frame)
    except OSError:  # the device is down, or its queue is full: a frame is lost
        return
