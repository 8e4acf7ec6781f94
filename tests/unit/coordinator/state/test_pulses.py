"""Who is late and who is gone: the same as if everybody was looked at each time, without looking at everybody."""

import random

import pytest

from strata.coordinator.state.now import Now
from strata.coordinator.state.pulses import Pulses
from strata.types.workers import MemberState

_LEASE_S = 10.0


def _at(seconds: float) -> Now:
    return Now(monotonic=seconds, wall=1_000.0 + seconds)


class _Clinic:
    """Some who live, and how often all of them were gone over."""

    def __init__(self, *names: str) -> None:
        self.pulses = Pulses(_LEASE_S)
        self.names = dict.fromkeys(names, 0.0)
        self.num_looks = 0
        for name in names:
            self.pulses.start(name, _at(0.0))

    def alive(self) -> list[str]:
        self.num_looks += 1
        return list(self.names)

    def beat(self, name: str, seconds: float) -> None:
        self.names[name] = seconds
        self.pulses.beat(name, None, _at(seconds))

    def look(self, seconds: float) -> dict[str, str]:
        return self.pulses.look(self.alive, _at(seconds))


def test_nobody_is_looked_at_before_somebody_may_be_late() -> None:
    clinic = _Clinic("a", "b")
    for seconds in (1.0, 2.0, 5.9):
        assert clinic.look(seconds) == {}
    assert clinic.num_looks == 1
    for name in ("a", "b"):
        clinic.beat(name, 5.9)
    for seconds in (6.1, 7.0, 11.8):
        assert clinic.look(seconds) == {}
    assert (clinic.num_looks, clinic.pulses.suspects) == (2, set())
    clinic.beat("a", 11.9)
    assert (clinic.look(12.0), clinic.pulses.suspects) == ({}, {"b"})
    assert clinic.look(15.8) == {}
    assert clinic.num_looks == 3
    assert clinic.look(16.0) == {"b": "no heartbeat for 10.1 s (timeout 10 s)"}


@pytest.mark.parametrize("seed", range(50))
def test_it_is_as_if_all_were_looked_at_each_time(seed: int) -> None:
    chance, clinic, now = random.Random(seed), _Clinic("first"), 0.0
    suspects: set[str] = set()
    for number in range(300):
        now += chance.choice([0.0, 0.1, 0.2, 0.2, 0.5, 3.0])
        names = list(clinic.names)
        match chance.randrange(4):
            case 0 if names:
                name = chance.choice(names)
                clinic.beat(name, now)
                suspects.discard(name)
            case 1 if chance.random() < 0.2:
                clinic.names[f"n{number}"] = now
                clinic.pulses.start(f"n{number}", _at(now))
            case 2 if chance.random() < 0.1:
                clinic.names = dict.fromkeys(clinic.names, now)
                clinic.pulses.renew(clinic.names, _at(now))
            case _:
                suspects |= {name for name, seen in clinic.names.items() if now - seen > 0.6 * _LEASE_S}
                gone = {name for name, seen in clinic.names.items() if now - seen > _LEASE_S}
                assert clinic.look(now).keys() == gone
                assert clinic.pulses.suspects == suspects
                clinic.pulses.end(gone)
                suspects -= gone
                clinic.names = {name: seen for name, seen in clinic.names.items() if name not in gone}
    assert clinic.num_looks < 300


def test_what_somebody_said_of_its_going_ends_with_its_process() -> None:
    clinic = _Clinic("a", "b")
    clinic.pulses.note_words(("a",), asked=True, leaving=False)
    clinic.pulses.note_words(("b",), asked=True, leaving=True)
    assert (clinic.pulses.asked, clinic.pulses.leaving) == ({"a", "b"}, {"b"})
    clinic.pulses.note_words(("a",), asked=False, leaving=True)
    assert (clinic.pulses.asked, clinic.pulses.leaving) == ({"b"}, {"a", "b"})
    clinic.pulses.suspect("a")
    assert clinic.pulses.standing("a", MemberState.READY) is MemberState.SUSPECT
    clinic.pulses.start("a", _at(1.0))
    clinic.pulses.end(["b"])
    assert not clinic.pulses.suspects | clinic.pulses.asked | clinic.pulses.leaving


def test_those_who_beat_together_are_as_if_each_had_beaten() -> None:
    one, other = _Clinic("a", "b", "c"), _Clinic("a", "b", "c")
    for clinic in (one, other):
        clinic.pulses.suspect("b")
        clinic.pulses.cut["b"] = clinic.pulses.cut["c"] = 1.0
        list(clinic.pulses.take_changed())
    said = {"a": b"x", "b": b"y"}
    one.pulses.beat_together(said, _at(4.0))
    for name, words in said.items():
        other.pulses.beat(name, words, _at(4.0))
    for name in one.names:
        assert one.pulses.of(name) == other.pulses.of(name)
    assert (one.pulses.suspects, one.pulses.cut) == (other.pulses.suspects, other.pulses.cut) == (set(), {"c": 1.0})
    assert list(one.pulses.take_changed()) == ["a", "b"]
