"""What a rank's last lines say about its death: the exception that Python named, or the arguments that a program did
not take. A last line that is neither says nothing: it may be a progress bar, or the advice of a library.
"""

import re
from typing import NamedTuple

__all__ = ["Cause", "CauseWatch"]

_FRAME = re.compile(r'\s+File ".*", line \d+')
_HEADER = re.compile(r"(Exception Group )?Traceback \(most recent call last\):")
_EXCEPTION = re.compile(r"([A-Za-z_][\w.]*)(:|$)")
_USAGE = re.compile(r"[\w./-]+: error: ")
_PREFIX = re.compile(r"(\[rank\d+\]: ?)?(  [|+] )?")  # torch's of every line, and that of an exception group's
_USAGE_EXIT = 2
_NEAR_LINES = 20  # what is printed on the way out; an older traceback was caught and logged
_MAX_CHARS = 500


class Cause(NamedTuple):
    """`kind` is the exception's type without its module, or "usage"; `text` the line that says it."""

    kind: str = ""
    text: str = ""


class CauseWatch:
    """Fed with every line of stderr, in order."""

    def __init__(self) -> None:
        self._inside = False
        self._exception = Cause()
        self._usage = Cause()
        self._since = 0  # lines after the exception

    def feed(self, line: str) -> None:
        text = _PREFIX.sub("", line, count=1)
        self._since += 1
        if _HEADER.match(text) or _FRAME.match(text):
            self._inside = True
        elif self._inside and not text[:1].isspace():
            self._inside = False
            found = _EXCEPTION.match(text)
            if found:
                self._exception, self._since = Cause(found[1].rpartition(".")[2], text[:_MAX_CHARS]), 0
        self._usage = Cause("usage", text[:_MAX_CHARS]) if _USAGE.match(text) else Cause()

    def of_exit(self, code: int | None) -> Cause:
        """Why a process with this exit code ended; nothing where its lines do not say. A signal asks no lines."""
        if code is None or code <= 0:
            return Cause()
        if self._exception.text and self._since <= _NEAR_LINES:
            return self._exception
        return self._usage if code == _USAGE_EXIT else Cause()
