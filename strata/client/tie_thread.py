"""A tie for programs that have no event loop: it lives on a thread of its own, and a caller waits for its answer."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer

from strata.client.tie import Rank, Tie
from strata.client.workers import Member
from strata.errors import DeadlineExceeded, StrataError, Unavailable
from strata.protocol.fields import from_message
from strata.protocol.generated import coordinator_pb2 as pb
from strata.trust.access import OPEN, Access
from strata.types.barriers import BarrierPolicy, BarrierResult

__all__ = ["TieThread"]

_BARRIER_TIMEOUT_S = 1800.0
_MARGIN_S = 30.0
_CLOSE_S = 5.0


class TieThread:
    """Begins with its construction, ends with `close`."""

    def __init__(
        self, rank: Rank, roads: Sequence[str], *, access: Access = OPEN, beat_s: float, patience_s: float
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._tie = Tie(rank, roads, access=access, beat_s=beat_s, patience_s=patience_s)
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="strata-tie", daemon=True)
        self._thread.start()

    def barrier(
        self,
        member: Member,
        barrier_id: str,
        step: int = 0,
        *,
        expected: int = 0,
        timeout_s: float | None = None,
        policy: BarrierPolicy = BarrierPolicy.FAIL,
    ) -> BarrierResult:
        """Waits for all members. Whatever breaks meanwhile, the arrival is said again and counts once."""
        request = pb.BarrierRequest(
            worker_id=member.worker_id,
            barrier_id=barrier_id,
            step=step,
            expected_participants=expected,
            timeout_ms=int((timeout_s or 0) * 1e3),
            generation=member.generation,
            incarnation=member.incarnation,
            policy=pb.BarrierRequest.Policy.Value(policy.name),
        )
        answer: Future[pb.BarrierResponse | StrataError] = Future()
        self._soon(lambda: self._tie.arrive(request, answer.set_result))
        limit_s = (timeout_s or _BARRIER_TIMEOUT_S) + _MARGIN_S
        try:
            reply = answer.result(limit_s)
        except NoAnswer:
            raise DeadlineExceeded(f"barrier {barrier_id!r} was not answered within {limit_s:g} s") from None
        finally:
            if not answer.done():
                self._soon(lambda: self._tie.withdraw(request.request_id))
        if isinstance(reply, StrataError):
            raise reply
        return from_message(BarrierResult, reply)

    def beat_soon(self) -> None:
        self._soon(self._tie.beat_soon)

    def beat(self, timeout_s: float) -> bool:
        """Beats now, and says whether the coordinator took notice."""
        try:
            return asyncio.run_coroutine_threadsafe(self._tie.beat(), self._loop).result(timeout_s)
        except (NoAnswer, RuntimeError):  # RuntimeError: it is closed
            return False

    def close(self) -> None:
        """Says goodbye on the stream. Arrivals that still wait hear that it is closed."""
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._soon(self._closing.set)
            self._thread.join(_CLOSE_S)

    def forget(self) -> None:
        """For a forked child: while its copy of the parent's socket is open, nobody sees the parent's end. Its number
        stays taken, because an object still takes it for its own."""
        number = self._tie.fileno
        if number is not None and number >= 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, number)
            os.close(nothing)

    def _soon(self, call: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # asyncio's word for a loop that is closed
            raise Unavailable("this worker's connection to its coordinator is closed") from None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._live())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    async def _live(self) -> None:
        """Goes on when the tie is over, so that whoever still arrives hears why."""
        running = asyncio.create_task(self._tie.run())
        await self._closing.wait()
        running.cancel()
        await asyncio.wait([running])
