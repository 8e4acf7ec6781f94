"""How this process ends, as far as Python can tell: an error that reaches the top of the script, Ctrl-C, or the code
given to sys.exit. A kill -9 leaves no word; the observatory notices the silence.
"""

import sys
import threading
from types import TracebackType
from typing import NoReturn

__all__ = ["Ending"]


class Ending:
    """`status` and `reason` of a run whose script says nothing itself."""

    def __init__(self) -> None:
        self.status = "finished"
        self.reason = ""

    def watch(self) -> None:
        """From now on. Hooks that were there before are still called."""
        hook_before, exit_before = sys.excepthook, sys.exit

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self.note(error)
            hook_before(kind, error, trace)

        def leave(code: object = None) -> NoReturn:
            if threading.current_thread() is threading.main_thread():
                self.note(SystemExit(code))
            exit_before(code)  # type: ignore[arg-type]  # whatever the script gave

        sys.excepthook, sys.exit = hook, leave

    def note(self, error: BaseException) -> None:
        if isinstance(error, KeyboardInterrupt):
            self.status, self.reason = "killed", "Ctrl-C"
        elif not isinstance(error, SystemExit):
            self.status, self.reason = "failed", f"{type(error).__name__}: {error}"[:1000]
        elif error.code in (None, 0, False):
            self.status, self.reason = "finished", ""
        else:
            self.status, self.reason = "failed", f"sys.exit({error.code!r})"[:1000]
