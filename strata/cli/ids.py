"""Ids as commands take them, by callbacks of typer. One that nothing of ours can have is not known, and nobody is
asked: an empty one, or one with a slash, is another question to the REST API, and half of a character none at all.
"""

from collections.abc import Callable

from strata.errors import InvalidArgument, NotFound, UnknownTask, UnknownWorker
from strata.types.names import check_name

__all__ = ["host_id", "run_id", "task_id", "token_id", "unknown_worker", "worker_id"]


def _check(noun: str, unknown: Callable[[str], NotFound]) -> Callable[[str | None], str | None]:
    def check(given: str | None) -> str | None:
        if given is not None:
            try:
                check_name(noun, given)
            except InvalidArgument:
                raise unknown(f"no {noun} {given[:80]!r} is known") from None
        return given

    return check


def unknown_worker(said: str) -> UnknownWorker:
    """For people; the error's own hint is for workers."""
    return UnknownWorker(said, hint="List what there is with `strata workers`.")


task_id = _check("task", UnknownTask)
worker_id = _check("worker", unknown_worker)
run_id = _check("run", lambda said: NotFound(said, hint="List what there is with `strata runs`."))
host_id = _check("host", lambda said: NotFound(said, hint="List what there is with `strata hosts`."))
token_id = _check("token", lambda said: NotFound(said, hint="List what there is with `strata token list`."))
