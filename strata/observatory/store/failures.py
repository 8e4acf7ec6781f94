"""What ClickHouse and its driver raise, as errors of ours: whose fault it is decides who tries again."""

import re

from strata.errors import Busy, Internal, InvalidArgument, StoreUnavailable, StrataError

__all__ = ["to_error"]

_CODE = re.compile(r"Code: (\d+)\.")
# ClickHouse's codes for values that it will never take: text or numbers that do not fit a column, a constraint.
_NEVER = frozenset({6, 26, 27, 38, 41, 53, 69, 70, 72, 117, 128, 131, 321, 349, 395, 407, 469})
# Of the moment, or of its rights: memory, disk, parts, quotas, queries, access.
_LATER = frozenset({74, 75, 76, 159, 164, 201, 202, 209, 210, 236, 241, 242, 243, 252, 497, 516, 1001})


def to_error(error: Exception) -> StrataError:
    text = str(error).splitlines()[0][:500] if str(error) else type(error).__name__
    code = _CODE.search(text)
    if code is not None and int(code[1]) in _NEVER:
        return InvalidArgument(text)
    if code is not None and int(code[1]) in _LATER:
        return Busy(text)
    if type(error).__name__ in ("OperationalError", "ConnectionError", "ConnectionRefusedError"):
        return StoreUnavailable(text)
    return Internal(f"{type(error).__name__}: {text}")
