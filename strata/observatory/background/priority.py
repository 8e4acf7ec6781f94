"""On cores that are shared with a coordinator: the observatory and its store run when nobody else wants to.

Measured on two cores (docs/adr/0008): fair shares make the barriers' tail more than twice as long, because a barrier
needs both cores at once, several times. An idle task is preempted at every wake-up, but beside a training it starves.
"""

import os

from strata.errors import InvalidConfig
from strata.precedence import share_of_session

__all__ = ["run_in_background"]

_LEAST = 19


def run_in_background() -> None:
    """For this process and all that it starts from now on. There is no way back without privileges."""
    if not hasattr(os, "SCHED_IDLE"):
        raise InvalidConfig("observatory_priority=background needs Linux", hint="Leave it at normal.")
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    share_of_session(_LEAST)
