"""What ClickHouse, its driver and the way to it raise, as errors of ours in one sentence: whose fault it is decides who
tries again, and what becomes of rows that were refused.
"""

import re

from strata.errors import Busy, Internal, InvalidArgument, StoreUnavailable, StrataError

__all__ = ["SAID", "to_error"]

SAID = "ClickHouse says: "
_CODE = re.compile(r"Code: (\d+)\.\s*(?:DB::Exception: )?(.*)", re.DOTALL)
# What a server and its driver append: the step of the query, the code's name, the version, the address.
_TAIL = re.compile(
    r"(?:\s*: While executing \w+.*|\s*\([A-Z][A-Z0-9_]*\))?(?:\s*\(version .*)?(?:\s*\(for url .*)?$", re.DOTALL
)
_NETWORK = re.compile(
    r"\[Errno -?\d+\] [^'\")>]+|certificate verify failed: [^(\"')]+|alert [a-z ]+|(?:Read |Connect )?timed out"
    r"|Connection refused|Connection reset by peer|EOF occurred in violation of protocol"
)
# ClickHouse's codes for values that it will never take: text or numbers that do not fit a column, a constraint.
_NEVER = frozenset({6, 26, 27, 38, 41, 53, 69, 70, 72, 117, 128, 131, 321, 349, 395, 407, 469})
# Of the moment, or of its rights: memory, disk, parts, quotas, queries, access.
_LATER = frozenset({74, 75, 76, 159, 164, 201, 202, 209, 210, 236, 241, 242, 243, 252, 497, 516, 1001})
_AWAY = ("OperationalError", "ConnectionError", "ConnectionRefusedError")
_MAX_CHARS = 500


def to_error(error: Exception) -> StrataError:
    if isinstance(error, StrataError):
        return error
    text, kind = str(error) or type(error).__name__, type(error).__name__
    said = _CODE.search(text)
    if said is None:
        line = text.splitlines()[0][:_MAX_CHARS]
        if kind not in _AWAY:
            return Internal(f"{kind}: {line}")
        reason = _NETWORK.search(text)
        return StoreUnavailable(f"ClickHouse cannot be reached: {reason[0].strip() if reason else line}")
    code, words = int(said[1]), _TAIL.sub("", " ".join(said[2].split()), count=1).rstrip(". ")
    sentence = f"{SAID}{words[:_MAX_CHARS]} (code {code})"
    if code in _NEVER:
        return InvalidArgument(sentence)
    if code in _LATER:
        return Busy(sentence)
    return StoreUnavailable(sentence) if kind in _AWAY else Internal(sentence)
