"""Errors by their stable code: how one is rebuilt on the other side of a wire, with its own class."""

from collections.abc import Iterable

from strata.errors import StrataError

__all__ = ["error_types", "rebuild_error"]


def error_types() -> dict[str, type[StrataError]]:
    """Every class of the tree by its code."""
    found: dict[str, type[StrataError]] = {}
    pending: list[type[StrataError]] = [StrataError]
    while pending:
        cls = pending.pop()
        found[cls.code] = cls
        pending.extend(cls.__subclasses__())
    return found


def rebuild_error(code: str, message: str, *, hint: str | None, missing: Iterable[object] = ()) -> StrataError | None:
    """The error that the other side raised; None for a code that this version does not know."""
    cls = error_types().get(code)
    if cls is None:
        return None
    error = StrataError.__new__(cls)  # classes differ in their constructors, not in what a wire carries
    StrataError.__init__(error, message, hint=hint)
    error.__dict__["missing"] = tuple(missing)
    return error
