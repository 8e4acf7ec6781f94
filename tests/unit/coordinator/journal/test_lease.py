"""When a standby may take over: only after a whole lease in which it looked all the time and saw no beat."""

from strata.coordinator.journal.lease import LEASE_S, POLL_S, Lease, Vigil


def look(vigil: Vigil, beat: int, at: float, *, took: float = 0.01, holder: str = "a") -> bool:
    return vigil.is_over(Lease(term=1, beat=beat, seq=0, holder=holder), at, at + took)


def times(first: float, last: float) -> list[float]:
    return [first + number * POLL_S for number in range(int((last - first) / POLL_S) + 1)]


def test_a_free_lease_is_taken_at_once() -> None:
    assert look(Vigil(), 0, 100.0, holder="")


def test_a_holder_that_beats_is_left_alone() -> None:
    vigil = Vigil()
    assert not any(look(vigil, number // 2, at) for number, at in enumerate(times(100.0, 160.0)))


def test_a_holder_is_gone_after_a_whole_lease_without_a_beat() -> None:
    vigil = Vigil()
    answers = [look(vigil, 7, at) for at in times(100.0, 104.0)]
    assert answers.index(True) * POLL_S > LEASE_S, "counted from the first answer, not from the first question"


def test_a_time_without_answers_does_not_count() -> None:
    vigil = Vigil()
    assert not any(look(vigil, 7, at) for at in times(100.0, 101.5))
    assert not any(look(vigil, 7, at) for at in times(131.5, 133.25)), "the database was away, for the holder, too"
    assert look(vigil, 7, 133.75)


def test_an_answer_that_took_long_does_not_count() -> None:
    vigil = Vigil()
    assert not any(look(vigil, 7, at) for at in times(100.0, 101.5))
    assert not look(vigil, 7, 101.75, took=10.0)
    assert not look(vigil, 7, 112.0)
