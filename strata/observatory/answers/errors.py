"""The one form of an error over HTTP."""

from dataclasses import dataclass

__all__ = ["ErrorAnswer", "ErrorBody"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """`code` is stable and made for programs, `hint` says what to do; `field` is the part of the request that is wrong,
    where it is one."""

    code: str
    message: str
    hint: str
    field: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAnswer:
    """What was wrong."""

    error: ErrorBody
