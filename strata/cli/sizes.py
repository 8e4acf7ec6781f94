"""`--workers 4` or `--workers 2..8`: how many ranks a task has."""

import re
from typing import NamedTuple

from strata.errors import InvalidArgument

__all__ = ["Size", "parse_size"]

_FORM = re.compile(r"([0-9]{1,40})(?:\.\.([0-9]{1,40}))?")


class Size(NamedTuple):
    """At least and at most how many ranks."""

    least: int
    most: int

    @property
    def elastic(self) -> bool:
        return self.least < self.most


def parse_size(text: str) -> Size:
    found = _FORM.fullmatch(text)
    if found is None:
        raise InvalidArgument(
            f"--workers {text[:80]!r} is no number of workers",
            hint="Such as 4, or 2..8 for an elastic task.",
        )
    least, most = int(found[1]), int(found[2] or found[1])
    if least < 1:
        raise InvalidArgument(f"--workers {text[:80]} begins with {least}: a task has at least 1 worker")
    if least > most:
        raise InvalidArgument(f"--workers {text[:80]} is the wrong way round", hint=f"Give {most}..{least}.")
    return Size(least, most)
