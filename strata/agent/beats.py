"""Beats of this host's ranks on their way to the coordinator: those that say nothing new wait a moment for each other,
and what they say alike is said once.
"""

from typing import Final, NamedTuple

from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk

__all__ = ["HOLD_S", "OWN", "HeldBeats"]

# A quarter of the time between two beats of a rank. Whether a rank lives is known by its process and its socket within
# milliseconds; its beats renew a lease of 30 s, and of 4 s when its agent is lost.
HOLD_S = 0.25
# What changes as a rank trains. A rank tells it with its next beat; all else it tells at once (`Tie.beat_soon`).
OWN: Final = (
    "at_barrier",
    "current_epoch",
    "current_step",
    "own_time_s",
    "progress",
    "samples_done",
    "section",
    "section_timeout_s",
    "step_time_s",
)


class _Beat(NamedTuple):
    """A rank's newest beat: what it has most often in common with the others, and the rest."""

    sequence: int
    alike: bytes
    own: bytes


class HeldBeats:
    """By tie. It knows no clock: whoever has it takes them in time."""

    def __init__(self) -> None:
        self._held: dict[int, _Beat] = {}
        self._said: dict[int, bytes] = {}  # what each last said that others say alike

    def __contains__(self, tie: int) -> bool:
        return tie in self._held

    def add(self, tie: int, words: rk.RankWords) -> bool:
        """Takes a lone beat, which replaces one that is held. True when it must not wait: it says something new, or
        somebody waits for its answer."""
        status = words.beat.status
        own = pb.WorkerStatus(**{name: getattr(status, name) for name in OWN})
        for name in OWN:
            status.ClearField(name)
        beat = _Beat(words.sequence, status.SerializeToString(), own.SerializeToString())
        self._held[tie] = beat
        said, self._said[tie] = self._said.get(tie), beat.alike
        return words.awaited or said != beat.alike

    def take(self) -> list[ag.TieFrame]:
        """All that are held, those who say the same in one frame, each in the order of their ties."""
        held, self._held = self._held, {}
        alike: dict[bytes, ag.Beats] = {}
        for tie, beat in sorted(held.items()):
            beats = alike.setdefault(beat.alike, ag.Beats(alike=beat.alike))
            beats.ties.append(tie)
            beats.sequences.append(beat.sequence)
            beats.own.append(beat.own)
        return [ag.TieFrame(beats=beats) for beats in alike.values()]

    def forget(self, tie: int) -> None:
        """The tie has ended."""
        self._held.pop(tie, None)
        self._said.pop(tie, None)

    def clear(self) -> None:
        self._held.clear()
        self._said.clear()
