"""Alerts on their way to targets. Each target has its own bounded queue and its own tries: one that hangs holds up no
other, and nobody who finds something waits for any.
"""

import asyncio
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from strata.clock import Clock
from strata.errors import StrataError
from strata.observatory.alerts.delivery_log import DeliveryLog, Post
from strata.observatory.alerts.rule_book import RuleBook
from strata.observatory.alerts.rules import Target
from strata.observatory.alerts.senders import send
from strata.observatory.answers.alerts import Alert
from strata.observatory.answers.rules import Delivery, DeliveryState
from strata.observatory.background.part import Part
from strata.observatory.records.times import to_ms

__all__ = ["Deliveries"]

_log = logging.getLogger(__name__)
_TRIES = 3
_DEADLINE_S = 10.0  # of one try as a whole
_MAX_WAITING = 200
_EVERY_S = 0.2
_KEEP_EVERY_S = 1.0
_MAX_AT_ONCE = 64  # more than there are targets


class Deliveries(Part):
    """`own` is the target of the settings (STRATA_WEBHOOK_URL), which gets every alert."""

    def __init__(self, book: RuleBook, log: DeliveryLog, clock: Clock, own: Target | None = None) -> None:
        self.log = log
        self._book = book
        self._clock = clock
        self._own = own
        self._jobs: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(_MAX_AT_ONCE, "alert-sender")  # of its own: others must not wait for these
        self._kept_at = -_KEEP_EVERY_S
        self._writing = asyncio.Lock()

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
        post = self.log.post_of(target.name)
        if alert.severity != "critical" and target.is_quiet(self._clock.wall()):
            post.quieted += 1
            self._note(target.name, alert, "quieted")
        elif len(post.waiting) >= _MAX_WAITING:
            post.dropped += 1
            self._note(target.name, alert, "dropped", "too many alerts wait for this target")
        else:
            post.waiting.append(alert)
            self._note(target.name, alert, "waiting")

    def _note(self, target: str, alert: Alert, state: DeliveryState, problem: str = "") -> None:
        at_ms = to_ms(self._clock.wall())
        self.log.note(alert, Delivery(target=target, state=state, at_ms=at_ms, problem=problem or None))

    async def send(self, target: Target, alert: Alert) -> None:
        """One try, now, whatever the hour; raises Unavailable when it fails."""
        await asyncio.get_running_loop().run_in_executor(self._threads, send, target, alert, _DEADLINE_S)

    async def stop(self) -> None:
        """What is on its way goes on waiting: it is sent by the next start."""
        await super().stop()
        for job in self._jobs:
            job.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self.log.changed:
            await self._keep()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            for name, post in list(self.log.posts.items()):
                if self._target(name) is None:
                    self._forget(name, post)
                elif post.waiting and not post.busy:
                    post.busy = True
                    job = asyncio.get_running_loop().create_task(self._deliver(name, post))
                    self._jobs.add(job)
                    job.add_done_callback(self._jobs.discard)
            now = self._clock.monotonic()
            if self.log.changed and now - self._kept_at >= _KEEP_EVERY_S:
                self._kept_at = now
                await asyncio.shield(self._keep())  # a stop must not write beside it

    def _target(self, name: str) -> Target | None:
        return self._own if self._own is not None and name == self._own.name else self._book.targets.get(name)

    def _forget(self, name: str, post: Post) -> None:
        """Of a target that was deleted, so that a new one of its name begins anew."""
        for alert in post.waiting:
            self._note(name, alert, "dropped", "the target was deleted")
        del self.log.posts[name]
        self.log.changed = True

    async def _keep(self) -> None:
        """A disk that is full keeps nobody from being told."""
        try:
            async with self._writing:
                await asyncio.to_thread(self.log.write, self.log.plain())
        except OSError as error:
            self.log.changed = True
            self._book.aside.note("alert deliveries", "the file of what was sent", error.strerror or str(error))
        else:
            self._book.aside.clear("alert deliveries", "the file of what was sent")

    async def _deliver(self, name: str, post: Post) -> None:
        """All that waits, one after the other; what is on its way counts as waiting."""
        try:
            while post.waiting and (target := self._target(name)) is not None:
                await self._try(target, post.waiting[0], post)
                post.waiting.popleft()
        finally:
            post.busy = False

    async def _try(self, target: Target, alert: Alert, post: Post) -> None:
        for attempt in range(_TRIES):
            try:
                await self.send(target, alert)
            except StrataError as error:
                post.problem = error.message
                self._note(target.name, alert, "waiting", error.message)
                if attempt + 1 < _TRIES:
                    await asyncio.sleep(2**attempt)
            else:
                post.sent, post.problem, post.last_at = post.sent + 1, "", self._clock.wall()
                self._note(target.name, alert, "sent")
                return
        post.failed, post.last_at = post.failed + 1, self._clock.wall()
        self._note(target.name, alert, "failed", post.problem)
        _log.warning("alert %s was not sent after %d tries: %s", alert.id, _TRIES, post.problem)
