"""Ties children to their supervisor: when it is gone, even by kill -9, they end too."""

import ctypes
import os
import signal
import sys

__all__ = ["SUPERVISOR_VARIABLE", "die_with_parent"]

SUPERVISOR_VARIABLE = "STRATA_SUPERVISOR_PID"
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Asks the kernel for SIGTERM when the supervisor dies. Does nothing for a process that was started by hand."""
    supervisor = os.environ.pop(SUPERVISOR_VARIABLE, None)
    if supervisor is None or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(supervisor):  # it died before we could ask
        sys.exit(0)
