"""Signals that ask a training process to end: SIGTERM, and in a Slurm job SIGUSR1, the warning that `--signal` asks
for.
"""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["watch_stop_signals"]


def watch_stop_signals(on_stop: Callable[[], None]) -> Callable[[], None]:
    """Calls `on_stop` for them; whoever handled SIGTERM before is still called. A script's own use of SIGUSR1 stays.
    Returns what ends the watch. Only the main thread can watch: on another, nothing happens."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = signal.getsignal(signal.SIGTERM)

    def on_signal(number: int, frame: FrameType | None) -> None:
        on_stop()
        if callable(before) and number == signal.SIGTERM:
            before(number, frame)

    replaced: dict[int, Any] = {signal.SIGTERM: before}
    signal.signal(signal.SIGTERM, on_signal)
    if "SLURM_JOB_ID" in os.environ and signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
        replaced[signal.SIGUSR1] = signal.SIG_DFL
        signal.signal(signal.SIGUSR1, on_signal)

    def end() -> None:
        for number, handler in replaced.items():
            if signal.getsignal(number) is on_signal:
                signal.signal(number, handler)

    return end
