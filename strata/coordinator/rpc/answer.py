"""One frame around every call: it is counted, a StrataError becomes its status, a bug INTERNAL and a log entry."""

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

from strata.coordinator.engine.meter import Meter
from strata.coordinator.state.tasks import Tasks
from strata.errors import Internal, StrataError
from strata.grpcserver.call import Call
from strata.protocol.status import to_status, to_text, to_trailers
from strata.trust.table import Admission
from strata.trust.who import Who

__all__ = ["Context", "answered", "check_rank", "fail"]

_log = logging.getLogger(__name__)

_Request = TypeVar("_Request")
_Reply = TypeVar("_Reply")
Context = Call


def answered(
    method: Callable[[Any, _Request, Context], Awaitable[_Reply]],
) -> Callable[[Any, _Request, Context], Awaitable[_Reply]]:
    """For unary methods of a servicer that has a `meter`, the state's `tasks` and a `check` whether it may answer."""

    @functools.wraps(method)
    async def call(self: Any, request: _Request, context: Context) -> _Reply:
        meter: Meter = self.meter
        meter.count(method.__name__)
        try:
            self.check()
            check_rank(context, request, self.tasks)
            return await method(self, request, context)
        except StrataError as error:
            await fail(context, error)
        except Exception:
            _log.exception("%s failed", method.__name__)
            await fail(context, Internal(f"{method.__name__} failed inside the coordinator; its log says why"))

    return call


async def fail(context: Context, error: StrataError) -> NoReturn:
    """Ends the call with the error's status, message and trailers."""
    await context.abort(to_status(error), to_text(error), to_trailers(error))


def check_rank(context: Context, request: object, tasks: Tasks) -> None:
    """What the gate could not know: a rank's call must be about its own, and its attempt must be the current one."""
    admission = context.caller
    assert isinstance(admission, Admission)
    visitor = admission.visitor
    if visitor.who is Who.RANK:
        admission.check_own(request)
        tasks.check_attempt(visitor.task_id, visitor.attempt)
