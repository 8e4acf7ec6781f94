"""The one form of an error over HTTP."""

from dataclasses import dataclass

__all__ = ["ErrorAnswer", "ErrorBody"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """`code` is stable and made for programs, `hint` says what to do."""

    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAnswer:
    """What was wrong."""

    error: ErrorBody
