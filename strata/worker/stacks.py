"""Stacks for the agent that asks where a rank stands. C code prints them in a signal handler, so neither a call that
never returns nor the lock that it holds is in the way.
"""

import contextlib
import faulthandler
import os
import signal

from strata.types.workers import ALL_STACKS_SIGNAL, STACK_SIGNAL

__all__ = ["print_stacks_on_signal"]


def print_stacks_on_signal() -> None:
    """From now on, to the stderr of this moment, which the agent follows. A handler of the script's own stays. Other
    threads' stacks are read while these run, which may crash (CPython): so they have a signal of their own."""
    for number, all_threads in ((STACK_SIGNAL, False), (ALL_STACKS_SIGNAL, True)):
        if signal.getsignal(number) is signal.SIG_DFL:
            with contextlib.suppress(OSError):  # stderr is closed: nobody follows it
                faulthandler.register(number, file=os.dup(2), all_threads=all_threads)
