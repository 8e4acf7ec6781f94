"""Who may write a journal that several processes share: a row with a term and a beat, and the rule by which a standby
decides that its holder is gone. Pure: time is an argument, in seconds of a clock that also runs while a machine sleeps.
"""

from dataclasses import dataclass

__all__ = ["LEASE_S", "POLL_S", "RENEW_S", "Lease", "Vigil"]

LEASE_S = 2.0  # without a beat. The holder counts from before it asked, a standby from after it saw: no overlap.
RENEW_S = 0.5
POLL_S = 0.25
_BLIND_S = 1.0  # between two looks: what came in between was not seen


@dataclass(frozen=True, slots=True)
class Lease:
    """The row. Its holder raises `beat`, and `seq` with every commit; whoever takes over raises `term`. Without a
    holder it is free."""

    term: int
    beat: int
    seq: int
    holder: str


class Vigil:
    """What a standby has seen of the lease. After a time in which it saw nothing it starts anew: the database may have
    been away for the holder, too, who must have the time to say that it is there."""

    def __init__(self) -> None:
        self._seen: tuple[int, int] | None = None
        self._since = 0.0
        self._looked_at = 0.0

    def is_over(self, lease: Lease, asked_at: float, now: float) -> bool:
        """Whether its holder is gone, by an answer of `now` to a question of `asked_at`."""
        seen = (lease.term, lease.beat)
        if seen != self._seen or asked_at - self._looked_at > _BLIND_S or now - asked_at > _BLIND_S:
            self._seen, self._since = seen, now
        self._looked_at = now
        return not lease.holder or asked_at - self._since >= LEASE_S
