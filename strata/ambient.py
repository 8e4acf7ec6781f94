"""What a run tells the parts below it of this process: who owns its checkpoints, which data it reads and leaves out,
who lends it shards, who hears what it reads. Mostly as calls, so that a part is imported when it is first asked for: a
script that only logs loads none of them.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["ambient"]


class _Ambient:
    """Set by the worker runtime, or by a test; read by the modules whose Protocol each call answers with. None: nobody
    said anything. One process belongs to one job."""

    def __init__(self) -> None:
        self.owner: Callable[[], Any] | None = None  # strata.checkpoint.owner
        self.plan: Callable[[], Any] | None = None  # strata.data.plan
        self.queue: Callable[[], Any] | None = None  # strata.data.queue
        self.watcher: Callable[[], Any] | None = None  # strata.data.watch
        self.forked: Any = None  # the ForkedData of strata.types.forks


ambient = _Ambient()
