"""How this process ends, as far as Python can tell: an error that reaches the top of the script, Ctrl-C, or the code
given to sys.exit. A kill -9 leaves no word; the observatory notices the silence.
"""

import sys
import threading
from types import FrameType, TracebackType
from typing import NoReturn

__all__ = ["Ending"]


class Ending:
    """`status` and `reason` of a run whose script says nothing itself."""

    def __init__(self) -> None:
        self.status = "finished"
        self.reason = ""
        self._left = False
        self._script: FrameType | None = None

    def watch(self) -> None:
        """From now on. Hooks that were there before are still called."""
        self._script = _script()
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
        self._left = isinstance(error, SystemExit)
        if isinstance(error, KeyboardInterrupt):
            self.status, self.reason = "killed", "Ctrl-C"
        elif not isinstance(error, SystemExit):
            self.status, self.reason = "failed", f"{type(error).__name__}: {error}"[:1000]
        elif error.code in (None, 0, False):
            self.status, self.reason = "finished", ""
        else:
            self.status, self.reason = "failed", f"sys.exit({error.code!r})"[:1000]

    @property
    def is_well(self) -> bool:
        """Whether it is known, when the interpreter ends, that the script came to its last line or called sys.exit(0).
        `raise SystemExit(1)` passes no hook, so that `status` alone does not say it."""
        return self.status == "finished" and (self._left or (self._script is not None and _returned(self._script)))


def _script() -> FrameType | None:
    """The frame of the script itself; None where it is not below this call, as in a thread."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and (frame.f_code.co_name, frame.f_globals.get("__name__")) != ("<module>", "__main__"):
        frame = frame.f_back
    return frame


def _returned(frame: FrameType) -> bool:
    """Whether its last instruction was a return: that of a frame which an exception left is another."""
    from opcode import opname

    return frame.f_lasti >= 0 and opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN_")
