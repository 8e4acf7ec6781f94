"""On cores that are shared with a coordinator: the observatory and its store run when nobody else wants to.

Measured on two cores (benchmarks/results/planes.md): fair shares make the barriers' tail about twice as long, whatever
the nice level, because a barrier needs both cores at once, several times. An idle task is preempted at every wake-up.
"""

import contextlib
import os
from pathlib import Path

from strata.errors import InvalidConfig

__all__ = ["run_in_background"]

_LEAST = "19"


def run_in_background() -> None:
    """For this process and all that it starts from now on. There is no way back without privileges."""
    if not hasattr(os, "SCHED_IDLE"):
        raise InvalidConfig("observatory_priority=background needs Linux", hint="Leave it at normal.")
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if os.getsid(0) == os.getpid():
        # Under `strata up` the session is ours alone. Kernels that group tasks by session share between the groups,
        # whatever is idle inside of them.
        with contextlib.suppress(OSError):
            Path("/proc/self/autogroup").write_text(_LEAST)
