"""Barriers are sets: retries are harmless, deaths are named, an answer once given stays the same."""

import pytest

from strata.cluster.events import BarrierBroke, BarrierReleased
from strata.coordinator.state.cluster import StateConfig
from strata.coordinator.state.outcomes import Outcome, outcome_for
from strata.errors import BarrierBroken, BarrierExpired, Fenced, InvalidArgument
from strata.types.barriers import BarrierKey, BarrierPolicy
from tests.support.pure_cluster import PureCluster

SHRINK, WAIT = BarrierPolicy.SHRINK, BarrierPolicy.WAIT
KEY = BarrierKey("", "b", 0)


@pytest.fixture
def cluster() -> PureCluster:
    cluster = PureCluster()
    cluster.join_all("a", "b", "c")
    return cluster


def released(outcome: Outcome | None) -> BarrierReleased:
    assert isinstance(outcome, BarrierReleased), outcome
    return outcome


def broke(outcome: Outcome | None) -> BarrierBroke:
    assert isinstance(outcome, BarrierBroke), outcome
    return outcome


# --- arriving


def test_it_releases_when_the_last_member_arrives(cluster: PureCluster) -> None:
    assert cluster.arrive("b") is None
    assert cluster.arrive("a") is None
    outcome = released(cluster.arrive("c"))
    assert outcome.worker_ids == ("b", "a", "c")
    result = outcome_for(outcome, "a")
    assert (result.participants, result.arrival_order, result.generation) == (3, 2, 3)


def test_an_arrival_repeated_counts_once(cluster: PureCluster) -> None:
    for _ in range(5):
        assert cluster.arrive("a") is None
        assert cluster.arrive("b", request_id="r") is None
    assert cluster.arrive("c") is not None


def test_steps_and_names_and_groups_are_barriers_of_their_own(cluster: PureCluster) -> None:
    cluster.join("x", task_id="t")
    assert cluster.arrive("a", step=1) is None
    assert cluster.arrive("b", step=2) is None
    assert cluster.arrive("c", "other") is None
    assert cluster.arrive("x", step=1) is not None
    assert len(cluster.state.barriers.open) == 3


def test_a_late_retry_with_its_request_id_gets_the_same_answer_for_ever_after(cluster: PureCluster) -> None:
    first = [cluster.arrive(name, request_id=f"{name}-1") for name in "abc"][-1]
    second = [cluster.arrive(name, request_id=f"{name}-2") for name in "abc"][-1]
    assert (released(first).round, released(second).round) == (1, 2)
    assert cluster.arrive("a", request_id="a-1") == first
    assert cluster.arrive("b", request_id="b-2") == second
    assert not cluster.state.barriers.open, "a retry of an old round must not open a new one"
    cluster.restart()
    assert cluster.arrive("a", request_id="a-1") == first
    assert cluster.arrive("c", request_id="c-2") == second


def test_a_request_id_used_for_another_barrier_is_another_arrival(cluster: PureCluster) -> None:
    for name in "abc":
        cluster.arrive(name, request_id="r")
    assert cluster.arrive("a", "other", request_id="r") is None


def test_a_plain_retry_gets_the_answer_until_it_was_collected(cluster: PureCluster) -> None:
    outcome = [cluster.arrive(name) for name in "abc"][-1]
    assert cluster.arrive("a") == outcome, "its answer was lost on the way"
    assert cluster.arrive("a") is None, "it has it: this is the next round"
    cluster.state.barriers.collected(KEY, ("b",))
    assert cluster.arrive("b") is None
    assert cluster.arrive("c") == outcome
    next_round = released(cluster.arrive("c"))
    assert next_round.round == 2


def test_answers_are_kept_for_ten_minutes(cluster: PureCluster) -> None:
    outcome = [cluster.arrive(name, request_id=name) for name in "abc"][-1]
    cluster.clock.advance(599)
    cluster.state.barriers.forget_old(cluster.now())
    assert cluster.arrive("a", request_id="a") == outcome
    cluster.clock.advance(2)
    cluster.state.barriers.forget_old(cluster.now())
    assert cluster.arrive("a", request_id="a") is None


def test_a_newcomer_who_arrives_belongs_to_it(cluster: PureCluster) -> None:
    cluster.arrive("a")
    cluster.join("d")
    cluster.arrive("d")
    cluster.arrive("b")
    outcome = released(cluster.arrive("c"))
    assert set(outcome.worker_ids) == {"a", "b", "c", "d"}


def test_a_newcomer_who_stays_away_is_not_waited_for(cluster: PureCluster) -> None:
    cluster.arrive("a")
    cluster.join("d")
    cluster.arrive("b")
    assert set(released(cluster.arrive("c")).worker_ids) == {"a", "b", "c"}


# --- a stated number


def test_expected_participants_wait_for_members_who_are_still_to_come(cluster: PureCluster) -> None:
    for name in "abc":
        assert cluster.arrive(name, expected=4) is None
    cluster.join("d")
    assert released(cluster.arrive("d", expected=4)).worker_ids == ("a", "b", "c", "d")


def test_fewer_than_the_group_may_meet(cluster: PureCluster) -> None:
    cluster.arrive("a", expected=2)
    assert released(cluster.arrive("c", expected=2)).worker_ids == ("a", "c")


def test_a_changed_count_or_policy_is_refused(cluster: PureCluster) -> None:
    cluster.arrive("a", expected=3)
    with cluster.refuses(InvalidArgument, "opened for 3 participants, worker b says 2"):
        cluster.arrive("b", expected=2)
    with cluster.refuses(InvalidArgument, "opened with policy fail, worker b says shrink"):
        cluster.arrive("b", policy=SHRINK)
    cluster.arrive("b")
    assert cluster.arrive("c", expected=3) is not None


@pytest.mark.parametrize(
    "values",
    [
        {"barrier_id": ""},
        {"barrier_id": "b" * 10_000_000},
        {"step": -1},
        {"expected": -1},
        {"timeout_s": -1.0},
        {"timeout_s": 0.0},
        {"generation": -1},
    ],
)
def test_a_bad_arrival_is_refused(cluster: PureCluster, values: dict[str, object]) -> None:
    with cluster.refuses(InvalidArgument):
        cluster.arrive("a", **values)  # type: ignore[arg-type]  # wrong on purpose


# --- deaths


def test_a_death_breaks_it_at_once_and_names_exactly_the_dead(cluster: PureCluster) -> None:
    cluster.arrive("a")
    cluster.lose("b", "c", reason="exited with code 3")
    outcome = broke(cluster.events[-1])  # type: ignore[arg-type]  # narrowed by broke
    assert outcome.missing == ("b", "c")
    assert outcome.reason == "b (rank 1): exited with code 3; c (rank 2): exited with code 3"
    assert not outcome.expired
    with pytest.raises(BarrierBroken, match="barrier 'b' is broken: b \\(rank 1\\)") as caught:
        outcome_for(outcome, "a")
    assert caught.value.missing == ("b", "c")
    assert cluster.arrive("a") == outcome, "whose answer was lost hears it again"


def test_a_departure_breaks_it_too(cluster: PureCluster) -> None:
    cluster.arrive("a")
    cluster.leave("b")
    assert cluster.happened(BarrierBroke)[0].missing == ("b",)


def test_a_lease_that_runs_out_breaks_it_in_the_same_tick(cluster: PureCluster) -> None:
    cluster.arrive("a")
    cluster.clock.advance(20)
    cluster.beat("a", "b")
    cluster.pass_time(11)
    assert cluster.happened(BarrierBroke)[0].missing == ("c",)


def test_a_stranger_s_death_changes_nothing(cluster: PureCluster) -> None:
    cluster.join("x", task_id="t")
    cluster.arrive("a")
    cluster.lose("x")
    cluster.join("d")
    cluster.lose("d")
    assert cluster.state.barriers.open


def test_when_only_the_number_is_known_a_death_counts_if_it_makes_it_unreachable(cluster: PureCluster) -> None:
    cluster.arrive("a", expected=2)
    cluster.lose("b")
    assert cluster.state.barriers.open, "a and c can still make two"
    cluster.lose("c")
    assert cluster.happened(BarrierBroke)[0].missing == ("c",)


def test_when_only_the_number_is_known_the_death_of_one_who_arrived_breaks_it(cluster: PureCluster) -> None:
    cluster.arrive("a", expected=2)
    cluster.lose("a")
    assert cluster.happened(BarrierBroke)[0].missing == ("a",)


def test_shrink_goes_on_with_the_survivors_and_lists_the_absent(cluster: PureCluster) -> None:
    cluster.arrive("a", policy=SHRINK)
    cluster.lose("b")
    outcome = released(cluster.arrive("c", policy=SHRINK))
    assert outcome.worker_ids == ("a", "c")
    assert outcome_for(outcome, "a").absent == ("b",)


@pytest.mark.parametrize("others", ["", "d"])
def test_who_comes_back_to_a_barrier_that_shrank_is_not_absent(cluster: PureCluster, others: str) -> None:
    """Whether it knows its members, or only how many they are."""
    cluster.join_all(*others)
    for name in "ab":
        cluster.arrive(name, policy=SHRINK, expected=3)
    for _ in range(2):
        cluster.lose("b")
        cluster.join("b")
        assert cluster.arrive("b", policy=SHRINK, expected=3) is None
    outcome = released(cluster.arrive("c", policy=SHRINK, expected=3))
    assert (outcome.worker_ids, outcome.absent) == (("a", "b", "c"), ())


def test_shrink_releases_when_the_last_one_missing_dies(cluster: PureCluster) -> None:
    cluster.arrive("a", policy=SHRINK)
    cluster.arrive("b", policy=SHRINK)
    cluster.lose("c")
    assert cluster.happened(BarrierReleased)[0].worker_ids == ("a", "b")


def test_shrink_to_nobody_is_forgotten(cluster: PureCluster) -> None:
    cluster.arrive("a", policy=SHRINK)
    cluster.lose("a", "b", "c")
    assert not cluster.state.barriers.open
    assert not cluster.happened(BarrierReleased)


def test_wait_holds_the_place_for_the_same_id_or_a_replacement(cluster: PureCluster) -> None:
    for name in "abc":
        cluster.arrive(name, "first", policy=WAIT) if name != "c" else None
    cluster.lose("b", "c")
    cluster.join("c")
    cluster.arrive("c", "first", policy=WAIT)
    assert cluster.state.barriers.open, "b had arrived, but that process is gone"
    cluster.join("new")
    outcome = released(cluster.arrive("new", "first", policy=WAIT))
    assert set(outcome.worker_ids) == {"a", "c", "new"}


def test_after_a_break_the_next_round_is_of_the_living(cluster: PureCluster) -> None:
    cluster.arrive("a", request_id="1")
    cluster.lose("c")
    assert cluster.arrive("a", request_id="2") is None
    outcome = released(cluster.arrive("b", request_id="1"))
    assert (outcome.round, outcome.worker_ids) == (2, ("a", "b"))


def test_the_dead_cannot_arrive(cluster: PureCluster) -> None:
    cluster.arrive("a")
    cluster.lose("b")
    with cluster.refuses(Fenced, "worker b was declared lost"):
        cluster.arrive("b")


# --- deadlines and giving up


def test_a_deadline_names_who_is_missing_with_the_age_of_their_heartbeat(cluster: PureCluster) -> None:
    cluster.arrive("a", timeout_s=10)
    cluster.clock.advance(4)
    cluster.beat("b")
    cluster.pass_time(6)
    outcome = cluster.happened(BarrierBroke)[0]
    assert outcome.expired
    assert outcome.missing == ("b", "c")
    assert outcome.reason == (
        "1 of 3 arrived in 10.0 s; missing: b (rank 1), last heartbeat 6.0 s ago, c (rank 2), last heartbeat 10.0 s ago"
    )
    with pytest.raises(BarrierExpired, match="expired: 1 of 3 arrived"):
        outcome_for(outcome, "a")


@pytest.mark.parametrize("request_id", ["", "late"])
def test_who_comes_after_the_deadline_hears_that_it_is_over(cluster: PureCluster, request_id: str) -> None:
    cluster.arrive("a", timeout_s=10, request_id="a")
    cluster.pass_time(10)
    outcome = cluster.happened(BarrierBroke)[0]
    assert cluster.arrive("b", request_id=request_id) == outcome
    if request_id:
        assert cluster.arrive("b", request_id=request_id) == outcome, "and so does its retry"
    assert cluster.arrive("b", request_id=request_id and "next") is None, "but it may come to the next round"


def test_members_without_a_deadline_have_the_cluster_s() -> None:
    cluster = PureCluster(StateConfig(barrier_timeout_s=50, worker_lease_s=1000))
    cluster.join_all("a", "b")
    cluster.arrive("a")
    cluster.pass_time(49)
    assert cluster.state.barriers.open
    cluster.pass_time(1)
    assert cluster.happened(BarrierBroke)[0].expired


def test_a_number_that_nobody_can_reach_expires_and_says_so(cluster: PureCluster) -> None:
    for name in "abc":
        cluster.arrive(name, expected=5, timeout_s=5)
    cluster.pass_time(5)
    assert "3 of 5 arrived in 5.0 s; missing: members that never registered" in cluster.happened(BarrierBroke)[0].reason


def test_a_sentence_names_eight_and_counts_the_rest_but_the_event_names_all() -> None:
    cluster = PureCluster()
    cluster.join_all(*(f"w{number:02}" for number in range(30)))
    cluster.arrive("w00", timeout_s=5)
    cluster.pass_time(5)
    expired = cluster.happened(BarrierBroke)[0]
    assert expired.reason.endswith("and 21 more")
    assert len(expired.missing) == 29
    cluster.arrive("w00", "c")
    cluster.lose(*(f"w{number:02}" for number in range(1, 30)))
    assert cluster.happened(BarrierBroke)[1].reason.endswith("; and 21 more")


def test_who_gives_up_no_longer_counts(cluster: PureCluster) -> None:
    cluster.arrive("a")
    cluster.arrive("b")
    cluster.state.barriers.withdraw(KEY, 1, "a")
    assert cluster.arrive("c") is None
    assert cluster.arrive("a") is not None


def test_who_gave_up_is_not_told_the_end_by_any_of_its_requests(cluster: PureCluster) -> None:
    """Two threads waited at it, and their stream broke: they say it again, and the round without them is over."""
    cluster.join("d")
    cluster.arrive("b", request_id="r", expected=3)
    for request_id in ("first", "second"):
        cluster.arrive("a", request_id=request_id, expected=3)
    cluster.state.barriers.withdraw(KEY, 1, "a")
    for name in "cd":
        cluster.arrive(name, request_id="r", expected=3)
    for request_id in ("first", "second"):
        assert cluster.arrive("a", request_id=request_id, expected=3) is None


def test_a_barrier_that_everybody_gave_up_is_gone(cluster: PureCluster) -> None:
    cluster.arrive("a", expected=3)
    cluster.state.barriers.withdraw(KEY, 1, "a")
    cluster.state.barriers.withdraw(KEY, 1, "a")
    assert not cluster.state.barriers.open
    cluster.arrive("a", expected=2)


def test_kept_answers_are_bounded_by_their_members(cluster: PureCluster) -> None:
    crowd = tuple(f"w{number}" for number in range(2_000))
    for step in range(110):
        requests = tuple(f"{name}-{step}" for name in crowd)
        event = BarrierReleased(
            task_id="",
            barrier_id="b",
            step=step,
            round=1,
            generation=3,
            worker_ids=("a", *crowd),
            request_ids=(f"a-{step}", *requests),
            absent=(),
            created_at=0.0,
            at=0.0,
        )
        cluster.state.evolve(event, cluster.now())
    assert cluster.state.barriers.kept == 200_000 // 2_002
    assert cluster.arrive("a", step=109, request_id="a-109") is not None
    assert cluster.arrive("a", step=0, request_id="a-0") is None
