"""Signs of life: when each worker or agent was last heard, and what it said. Never journaled, fresh after a restart.
A suspicion lives here too: it is no event, so records know nothing of it.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from strata.coordinator.state.now import Now
from strata.types.workers import MemberState

__all__ = ["Pulse", "Pulses"]

_SUSPECT_AFTER = 0.6  # of the lease: agents are suspect at 3 s of 5 s, plain workers at 18 s of 30 s


@dataclass(slots=True)
class Pulse:
    """`report` is the newest heartbeat as the transport gave it, opaque here. `changed`: since vitals were taken.
    `speaks`: it beats by itself, and is not only measured by its agent. `cut_at`: when its own connection ended, if no
    beat came since then."""

    seen_at: float  # monotonic
    seen_wall: float | None = None
    report: object | None = None
    suspect: bool = False
    changed: bool = True
    speaks: bool = False
    cut_at: float | None = None  # monotonic


class Pulses:
    """By name. `lease_s` is how long somebody lives without a beat."""

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self._pulses: dict[str, Pulse] = {}

    def of(self, name: str) -> Pulse:
        return self._pulses[name]

    def start(self, name: str, now: Now) -> None:
        self._pulses[name] = Pulse(seen_at=now.monotonic)

    def beat(self, name: str, report: object, now: Now) -> None:
        """A heartbeat arrived: the lease starts anew."""
        pulse = self._pulses[name]
        pulse.seen_at, pulse.seen_wall, pulse.report = now.monotonic, now.wall, report
        pulse.suspect, pulse.changed, pulse.cut_at = False, True, None

    def touch(self, name: str, now: Now) -> None:
        """Whoever calls is alive, also between heartbeats."""
        self._pulses[name].seen_at = now.monotonic

    def suspect(self, name: str) -> None:
        """Marks one as suspect: it may be dead, which nobody has decided yet."""
        pulse = self._pulses[name]
        if not pulse.suspect:
            pulse.suspect = pulse.changed = True

    def note_farewell(self, name: str) -> None:
        """It has ended its stream as it should, and beats no more."""
        pulse = self._pulses.get(name)
        if pulse is not None:
            pulse.speaks = False

    def silent_s(self, name: str, now: Now) -> float:
        return now.monotonic - self._pulses[name].seen_at

    def standing(self, name: str, state: MemberState) -> MemberState:
        """SUSPECT for one that is ready by its record but suspect; else the record's state."""
        return MemberState.SUSPECT if state is MemberState.READY and self._pulses[name].suspect else state

    def expired(self, alive: Iterable[str], now: Now) -> dict[str, str]:
        """Those whose lease ran out, each with the reason."""
        return {
            name: f"no heartbeat for {self.silent_s(name, now):.1f} s (timeout {self.lease_s:g} s)"
            for name in self._silent_for(self.lease_s, alive, now)
        }

    def suspect_late(self, alive: Iterable[str], now: Now) -> None:
        for name in self._silent_for(self.lease_s * _SUSPECT_AFTER, alive, now):
            self.suspect(name)

    def _silent_for(self, seconds: float, alive: Iterable[str], now: Now) -> list[str]:
        """Who was silent for longer. It looks at thousands, several times a second."""
        pulses, moment = self._pulses, now.monotonic
        return [name for name in alive if moment - pulses[name].seen_at > seconds]

    def renew(self, names: Iterable[str], now: Now) -> None:
        """A fresh full term: after a restart or a stall of our own, silence proves nothing."""
        pulses, moment = self._pulses, now.monotonic
        for name in names:
            pulses[name].seen_at = moment

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
