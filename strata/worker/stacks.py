"""The stacks of all threads, for the agent that asks where a rank stands. C code prints them in a signal handler, so
neither a call that never returns nor the lock that it holds is in the way.
"""

import contextlib
import faulthandler
import os
import signal

from strata.types.workers import STACK_SIGNAL

__all__ = ["print_stacks_on_signal"]


def print_stacks_on_signal() -> None:
    """From now on, to the stderr of this moment, which the agent follows. A handler of the script's own stays."""
    if signal.getsignal(STACK_SIGNAL) is not signal.SIG_DFL:
        return
    with contextlib.suppress(OSError):  # stderr is closed: nobody follows it
        faulthandler.register(STACK_SIGNAL, file=os.dup(2), all_threads=True)
