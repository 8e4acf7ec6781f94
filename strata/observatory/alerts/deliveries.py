"""Alerts on their way to targets. Each target has its own bounded queue and its own tries: one that hangs holds up no
other, and nobody who finds something waits for any.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from strata.clock import Clock
from strata.errors import StrataError
from strata.observatory.alerts.rule_book import RuleBook
from strata.observatory.alerts.rules import Target
from strata.observatory.alerts.senders import send
from strata.observatory.answers.alerts import Alert
from strata.observatory.answers.rules import Delivery, DeliveryState
from strata.observatory.background.part import Part
from strata.observatory.records.times import to_ms

__all__ = ["Deliveries", "Post"]

_log = logging.getLogger(__name__)
_TRIES = 3
_MAX_WAITING = 200
_MAX_TOLD = 1_000  # alerts of which is remembered who got them
_EVERY_S = 0.2


@dataclass(slots=True)
class Post:
    """What became of alerts for one target. `dropped` did not fit into the queue; `quieted` came in quiet hours.
    `last_at` is when the last one was sent or given up (Unix seconds), `problem` why it was not sent."""

    waiting: deque[Alert] = field(default_factory=deque)
    sent: int = 0
    failed: int = 0
    dropped: int = 0
    quieted: int = 0
    problem: str = ""
    last_at: float | None = None
    busy: bool = False


class Deliveries(Part):
    """`own` is the target of the settings (STRATA_WEBHOOK_URL), which gets every alert."""

    def __init__(self, book: RuleBook, clock: Clock, own: Target | None = None) -> None:
        self._book = book
        self._clock = clock
        self._own = own
        self._posts: dict[str, Post] = {}
        self._jobs: set[asyncio.Task[None]] = set()
        self._told: dict[str, dict[str, Delivery]] = {}  # by alert and target, the oldest first

    def post_of(self, name: str) -> Post:
        return self._posts.setdefault(name, Post())

    def of_alert(self, alert_id: str) -> list[Delivery]:
        """What became of one alert at each of its targets; empty for one that is long past."""
        return list(self._told.get(alert_id, {}).values())

    def offer(self, alert: Alert) -> None:
        """To the targets that get every alert."""
        own = [self._own] if self._own is not None else []
        for target in [*own, *(one for one in self._book.targets.values() if one.all_alerts)]:
            self._put(target, alert)

    def offer_to(self, names: Iterable[str], alert: Alert) -> None:
        """To the targets that a rule names, beside those that get every alert."""
        for target in [self._book.targets[name] for name in names if name in self._book.targets]:
            if not target.all_alerts:
                self._put(target, alert)

    def _put(self, target: Target, alert: Alert) -> None:
        post = self.post_of(target.name)
        if alert.severity != "critical" and target.is_quiet(self._clock.wall()):
            post.quieted += 1
            self._note(target, alert, "quieted")
        elif len(post.waiting) >= _MAX_WAITING:
            post.dropped += 1
            self._note(target, alert, "dropped", "too many alerts wait for this target")
        else:
            post.waiting.append(alert)
            self._note(target, alert, "waiting")

    def _note(self, target: Target, alert: Alert, state: DeliveryState, problem: str = "") -> None:
        self._told.setdefault(alert.id, {})[target.name] = Delivery(
            target=target.name, state=state, at_ms=to_ms(self._clock.wall()), problem=problem or None
        )
        while len(self._told) > _MAX_TOLD:
            del self._told[next(iter(self._told))]

    async def test(self, target: Target, alert: Alert) -> None:
        """One try, now, whatever the hour; raises Unavailable when it fails."""
        await asyncio.to_thread(send, target, alert)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            for name, post in list(self._posts.items()):
                if post.waiting and not post.busy:
                    post.busy = True
                    job = asyncio.get_running_loop().create_task(self._deliver(name, post))
                    self._jobs.add(job)
                    job.add_done_callback(self._jobs.discard)

    async def _deliver(self, name: str, post: Post) -> None:
        """All that waits, one after the other."""
        try:
            while post.waiting:
                target = self._own if self._own is not None and name == self._own.name else self._book.targets.get(name)
                alert = post.waiting.popleft()
                if target is not None:
                    await self._try(target, alert, post)
        finally:
            post.busy = False

    async def _try(self, target: Target, alert: Alert, post: Post) -> None:
        for attempt in range(_TRIES):
            try:
                await asyncio.to_thread(send, target, alert)
            except StrataError as error:
                post.problem = error.message
                self._note(target, alert, "waiting", error.message)
                if attempt + 1 < _TRIES:
                    await asyncio.sleep(2**attempt)
            else:
                post.sent, post.problem, post.last_at = post.sent + 1, "", self._clock.wall()
                self._note(target, alert, "sent")
                return
        post.failed, post.last_at = post.failed + 1, self._clock.wall()
        self._note(target, alert, "failed", post.problem)
        _log.warning("alert %s was not sent after %d tries: %s", alert.id, _TRIES, post.problem)
