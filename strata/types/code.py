"""The code of a task that goes along with it: an archive, known by the SHA-256 of its bytes."""

import re

from strata.errors import InvalidArgument

__all__ = ["MAX_ARCHIVE_BYTES", "PART_BYTES", "check_digest", "check_inside"]

MAX_ARCHIVE_BYTES = 64 << 20  # it is code: data belongs where all hosts read it
PART_BYTES = 1 << 20  # in one call

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def check_digest(value: str) -> str:
    """Returns it when it is the SHA-256 of something: it becomes the name of a file."""
    if not _DIGEST.match(value):
        raise InvalidArgument(f"code {value[:80]!r} is no SHA-256 in lower case")
    return value


def check_inside(path: str) -> str:
    """Returns it when it stays below the folder that it is joined to."""
    if path.startswith("/") or ".." in path.split("/"):
        raise InvalidArgument(f"working_dir {path[:200]!r} is not inside the code that goes along with the task")
    return path
