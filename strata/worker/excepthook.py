"""What a rank does when an error of a dead peer reaches the top of its script: it says so in a line, and waits to be
ended. Its own exit now would only blur who died first.
"""

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType

from strata.errors import BarrierBroken, PeerLost
from strata.worker.session import FENCED_EXIT

__all__ = ["watch_for_dead_peers"]

_WAIT_S = 10.0


def watch_for_dead_peers(finish: Callable[[], None]) -> None:
    """From now on. `finish` delivers what the process still has to say; other errors go where they went before."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not isinstance(error, PeerLost | BarrierBroken):
            before(kind, error, trace)
            return
        sys.stderr.write(f"strata: {error}; this rank ends and is started anew from the last checkpoint\n")
        sys.stderr.flush()
        finish()
        sys.stdout.flush()  # os._exit leaves behind what lies in buffers
        sys.stderr.flush()
        time.sleep(_WAIT_S)  # the agent ends it as soon as the coordinator has decided
        os._exit(FENCED_EXIT)

    sys.excepthook = hook
