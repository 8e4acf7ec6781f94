"""Signs of life: when each worker or agent was last heard, and what it said. Never journaled, fresh after a restart.
A suspicion lives here too: it is no event, so records know nothing of it.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from strata.coordinator.state.now import Now
from strata.types.workers import MemberState

__all__ = ["Pulse", "Pulses"]

_SUSPECT_AFTER = 0.6  # of the lease: agents are suspect at 3 s of 5 s, plain workers at 18 s of 30 s


@dataclass(slots=True)
class Pulse:
    """`report` is what it said last, `usage` what was measured of it, both as the transport gave them, opaque here.
    `changed`: since vitals were taken."""

    seen_at: float  # monotonic
    seen_wall: float | None = None
    report: object | None = None
    usage: object | None = None
    changed: bool = True


class Pulses:
    """By name. `lease_s` is how long somebody lives without a beat. `suspects` may be dead. Of those alive, `speaking`
    beat by themselves and are not only measured by their agent, `asked` were sent SIGTERM, `leaving` go because they
    were told to, by their own last word; `cut` says when the connection of one ended, if no beat came since then.
    Whoever needs to know them does not have to look at all."""

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self.suspects: set[str] = set()
        self.speaking: set[str] = set()
        self.asked: set[str] = set()
        self.leaving: set[str] = set()
        self.cut: dict[str, float] = {}  # monotonic
        self._pulses: dict[str, Pulse] = {}
        # Nobody alive who was not late at the last look was last heard before the first, nobody who was before the
        # second: who is heard of later is heard after that look.
        self._oldest, self._oldest_late = -math.inf, math.inf

    def of(self, name: str) -> Pulse:
        return self._pulses[name]

    def start(self, name: str, now: Now) -> None:
        self._forget_words((name,))
        self._pulses[name] = Pulse(seen_at=now.monotonic)

    def end(self, names: Collection[str]) -> None:
        """They are lost, or have left."""
        self._forget_words(names)
        self.note_change(names)

    def beat(self, name: str, report: object, now: Now) -> None:
        """A heartbeat arrived: the lease starts anew."""
        pulse = self._pulses[name]
        pulse.seen_at, pulse.seen_wall, pulse.report = now.monotonic, now.wall, report
        pulse.changed = True
        self.cut.pop(name, None)
        self.suspects.discard(name)

    def beat_together(self, reports: Mapping[str, object], now: Now) -> None:
        """`beat` of several, by name."""
        pulses, moment, wall = self._pulses, now.monotonic, now.wall
        for name, report in reports.items():
            pulse = pulses[name]
            pulse.seen_at, pulse.seen_wall, pulse.report = moment, wall, report
            pulse.changed = True
        self.suspects.difference_update(reports)
        for name in self.cut.keys() & reports.keys():
            del self.cut[name]

    def touch(self, name: str, now: Now) -> None:
        """Whoever calls is alive, also between heartbeats."""
        self._pulses[name].seen_at = now.monotonic

    def suspect(self, name: str) -> None:
        """Marks one as suspect: it may be dead, which nobody has decided yet."""
        if name not in self.suspects:
            self.suspects.add(name)
            self._pulses[name].changed = True

    def note_words(self, names: Collection[str], *, asked: bool, leaving: bool) -> None:
        """They beat by themselves. What they say of their going comes with every such beat."""
        self.speaking.update(names)
        for said, known in ((asked, self.asked), (leaving, self.leaving)):
            if said:
                known.update(names)
            elif known:
                known.difference_update(names)

    def note_farewell(self, name: str) -> None:
        """It has ended its stream as it should, and beats no more."""
        self.speaking.discard(name)

    def silent_s(self, name: str, now: Now) -> float:
        return now.monotonic - self._pulses[name].seen_at

    def standing(self, name: str, state: MemberState) -> MemberState:
        """SUSPECT for one that is ready by its record but suspect; else the record's state."""
        return MemberState.SUSPECT if state is MemberState.READY and name in self.suspects else state

    def look(self, alive: Callable[[], Iterable[str]], now: Now) -> dict[str, str]:
        """Suspects those who are late, and returns those whose lease ran out, each with the reason. It is called
        several times a second, and goes over those who are alive only when one of them may be late by now."""
        moment, suspect_s = now.monotonic, self.lease_s * _SUSPECT_AFTER
        if moment - self._oldest <= suspect_s and moment - self._oldest_late <= self.lease_s:
            return {}
        expired: dict[str, str] = {}
        self._oldest, self._oldest_late = moment, math.inf
        for name in alive():
            seen_at = self._pulses[name].seen_at
            if moment - seen_at <= suspect_s:
                self._oldest = min(self._oldest, seen_at)
                continue
            self.suspect(name)
            self._oldest_late = min(self._oldest_late, seen_at)
            if moment - seen_at > self.lease_s:
                expired[name] = f"no heartbeat for {moment - seen_at:.1f} s (timeout {self.lease_s:g} s)"
        return expired

    def renew(self, names: Iterable[str], now: Now) -> None:
        """A fresh full term: after a restart or a stall of our own, silence proves nothing."""
        pulses, moment = self._pulses, now.monotonic
        for name in names:
            pulses[name].seen_at = moment
            if name in self.cut:
                self.cut[name] = moment

    def note_change(self, names: Iterable[str]) -> None:
        for name in names:
            self._pulses[name].changed = True

    def take_changed(self) -> Iterator[str]:
        """Yields those that have changed since the last call."""
        for name, pulse in self._pulses.items():
            if pulse.changed:
                pulse.changed = False
                yield name

    def forget_others(self, known: Collection[str]) -> None:
        """Drops the pulses of those whose records are forgotten. Whoever is known has one."""
        if len(self._pulses) > len(known):
            for name in self._pulses.keys() - set(known):
                del self._pulses[name]

    def _forget_words(self, names: Collection[str]) -> None:
        for words in (self.suspects, self.speaking, self.asked, self.leaving):
            words.difference_update(names)
        for name in self.cut.keys() & names:
            del self.cut[name]
