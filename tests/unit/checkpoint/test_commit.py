"""One suite over the coordinator of a shared store, and over the one by which other tests save on threads: attempts,
votes, decisions, restarts and fencing.
"""

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from strata.checkpoint.commit import CommitCoordinator, SaveAttempt, SaveOutcome, Vote
from strata.checkpoint.layout import commit_key, manifest_key
from strata.checkpoint.manifest import digest_of
from strata.checkpoint.store_commit import StoreCommit
from strata.errors import CheckpointAborted, Fenced, InvalidArgument
from strata.storage.base import ObjectStore
from strata.storage.local import LocalStore
from strata.storage.memory import MemoryStore
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus
from tests.support.thread_commit import ThreadCommit

_RANKS = (0, 1, 2)
_INFO = CheckpointInfo(
    id="x", step=5, epoch=0, path="p", size_bytes=1, created_at=0.0, status=CheckpointStatus.COMPLETED
)
Group = Callable[[float], list[CommitCoordinator]]


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return LocalStore(tmp_path)


@pytest.fixture(params=["threads", "store"])
def group(request: pytest.FixtureRequest, store: ObjectStore) -> Group:
    """Makes one coordinator as seen by each of three ranks."""

    def make(deadline_s: float) -> list[CommitCoordinator]:
        if request.param == "threads":
            return [ThreadCommit(_RANKS, deadline_s=deadline_s)] * 3
        return [StoreCommit(store, rank=rank, ranks=_RANKS, generation=1, deadline_s=deadline_s) for rank in _RANKS]

    return make


def _vote(store: ObjectStore, attempt: SaveAttempt, rank: int) -> Vote:
    """What a rank does before it votes: its manifest is in the store."""
    key = manifest_key(attempt.step, attempt.attempt, rank)
    data = json.dumps({"size": 10 + rank}).encode()
    store.put(key, data)
    return Vote(rank=rank, key=key, digest=digest_of(data), size=10 + rank)


def _commit(store: ObjectStore, attempt: SaveAttempt) -> None:
    store.put(commit_key(attempt.step), json.dumps({"attempt": attempt.attempt}).encode(), create=True)


def test_every_rank_gets_the_same_attempt_and_all_learn_of_the_commit(group: Group, store: ObjectStore) -> None:
    ranks = group(5.0)
    attempts = [coordinator.begin(rank, 5, 0) for rank, coordinator in enumerate(ranks)]
    assert len(set(attempts)) == 1
    attempt = attempts[0]
    assert ranks[1].begin(1, 5, 0) == attempt
    for rank in (2, 1, 0):
        ranks[rank].vote(attempt, _vote(store, attempt, rank))
    votes = ranks[0].wait_votes(attempt)
    assert [(vote.rank, vote.size) for vote in votes] == [(0, 10), (1, 11), (2, 12)]
    decisions: list[bool] = []
    waiters = [
        threading.Thread(target=lambda c=c: decisions.append(c.wait_outcome(attempt).committed)) for c in ranks[1:]
    ]
    for waiter in waiters:
        waiter.start()
    _commit(store, attempt)
    ranks[0].publish(attempt, _INFO)
    for waiter in waiters:
        waiter.join(60)
    assert decisions == [True, True]


def test_the_deadline_names_who_is_missing_and_the_step_can_be_tried_again(group: Group, store: ObjectStore) -> None:
    ranks = group(0.15)
    attempt = ranks[0].begin(0, 5, 0)
    ranks[2].begin(2, 5, 0)
    ranks[0].vote(attempt, _vote(store, attempt, 0))
    with pytest.raises(CheckpointAborted) as caught:
        ranks[0].wait_votes(attempt)
    assert caught.value.missing == (1, 2)
    assert ranks[2].wait_outcome(attempt).missing == (1, 2)
    again = ranks[1].begin(1, 5, 0)
    assert again.attempt != attempt.attempt
    assert ranks[0].begin(0, 5, 0) == again


def test_a_rank_that_fails_frees_the_others_at_once(group: Group, store: ObjectStore) -> None:
    ranks = group(60.0)
    attempt = ranks[0].begin(0, 5, 0)
    ranks[1].abort(attempt, 1, "disk full")
    decision = ranks[2].wait_outcome(attempt)
    assert (decision.committed, decision.missing) == (False, (1,))
    assert "disk full" in decision.reason
    with pytest.raises(CheckpointAborted, match="disk full"):
        ranks[0].vote(attempt, _vote(store, attempt, 0))
    with pytest.raises(CheckpointAborted, match="disk full"):
        ranks[0].wait_votes(attempt)


def test_the_votes_of_a_dead_launch_never_join_those_of_a_new_one(store: ObjectStore) -> None:
    old = StoreCommit(store, rank=0, ranks=_RANKS, generation=1)
    attempt = old.begin(0, 5, 0)
    old.vote(attempt, _vote(store, attempt, 0))
    fresh = StoreCommit(store, rank=1, ranks=_RANKS, generation=2)
    newer = fresh.begin(1, 5, 0)
    assert newer.attempt != attempt.attempt
    with pytest.raises(CheckpointAborted, match="generation 2 has begun"):
        old.wait_votes(attempt)
    with pytest.raises(Fenced, match="generation 1, current 2"):
        StoreCommit(store, rank=2, ranks=_RANKS, generation=1).begin(2, 5, 0)


def test_a_restarted_rank_opens_a_new_attempt(store: ObjectStore) -> None:
    first = StoreCommit(store, rank=1, ranks=_RANKS, generation=1)
    attempt = first.begin(1, 5, 0)
    first.vote(attempt, _vote(store, attempt, 1))
    restarted = StoreCommit(store, rank=1, ranks=_RANKS, generation=1)
    assert restarted.begin(1, 5, 0).attempt != attempt.attempt
    decision = StoreCommit(store, rank=2, ranks=_RANKS, generation=1).wait_outcome(attempt)
    assert "rank 1 was restarted" in decision.reason


def test_a_committer_that_stops_after_the_votes_is_named(store: ObjectStore) -> None:
    ranks = [StoreCommit(store, rank=rank, ranks=_RANKS, generation=1, deadline_s=0.15) for rank in _RANKS]
    attempt = ranks[0].begin(0, 5, 0)
    ranks[1].begin(1, 5, 0)
    for rank in _RANKS:
        ranks[rank].vote(attempt, _vote(store, attempt, rank))
    ranks[0].wait_votes(attempt)
    decision = ranks[1].wait_outcome(attempt)
    assert (decision.committed, decision.missing) == (False, (0,))


@pytest.mark.parametrize("decided", [True, False])
def test_a_committer_that_falls_silent_is_replaced_by_one_after_the_other(store: ObjectStore, decided: bool) -> None:
    ranks = [
        StoreCommit(store, rank=rank, ranks=_RANKS, generation=1, deadline_s=60, patience_s=0.1) for rank in _RANKS
    ]
    attempt = ranks[0].begin(0, 5, 0)
    for rank in _RANKS:
        ranks[rank].vote(attempt, _vote(store, attempt, rank))
    if decided:
        ranks[0].wait_votes(attempt)
    answers: dict[int, SaveOutcome] = {}

    def wait(rank: int) -> None:
        answers[rank] = ranks[rank].wait_outcome(attempt)
        if answers[rank].votes:
            _commit(store, attempt)

    waiters = [threading.Thread(target=wait, args=(rank,)) for rank in (1, 2)]
    for waiter in waiters:
        waiter.start()
    for waiter in waiters:
        waiter.join(60)
    assert [vote.rank for vote in answers[1].votes] == [0, 1, 2]
    assert "no COMMIT.json" in answers[1].reason
    assert answers[2] == SaveOutcome(committed=True)
    assert [vote.rank for vote in ranks[0].wait_votes(attempt)] == [0, 1, 2]  # back again, it may commit as well


_ACTIONS = {"begin": 6.0, "vote": 6.0, "commit": 3.0, "abort": 0.3, "restart": 0.3, "relaunch": 0.3}


def test_whatever_happens_a_commit_has_every_vote_of_one_attempt() -> None:
    """Ranks begin, vote, die, come back and relaunch in any order; the committer decides whenever it likes."""
    outcomes: Counter[bool] = Counter()
    for seed in range(400):
        random = Random(seed)
        names = random.choices(list(_ACTIONS), list(_ACTIONS.values()), k=40)
        outcomes.update(_play([(random.choice(_RANKS), name) for name in names]).values())
    assert min(outcomes[True], outcomes[False]) > 20  # both endings were really reached


def _play(actions: list[tuple[int, str]]) -> dict[str, bool]:
    """One schedule; returns how each attempt ended."""
    store = MemoryStore()
    generation = 1
    ranks = _launch(store, generation)
    joined: dict[int, SaveAttempt] = {}
    decided: dict[str, bool] = {}
    for rank, action in actions:
        if action == "relaunch":
            generation += 1
            ranks, joined = _launch(store, generation), {}
        elif action == "restart":
            ranks[rank] = StoreCommit(store, rank=rank, ranks=_RANKS, generation=generation, deadline_s=1e-9)
            joined.pop(rank, None)
        elif action == "begin":
            joined[rank] = ranks[rank].begin(rank, 5, 0)
        elif rank in joined:
            attempt = joined[rank]
            if action == "vote":
                with contextlib.suppress(CheckpointAborted):
                    ranks[rank].vote(attempt, _vote(store, attempt, rank))
            elif action == "abort":
                ranks[rank].abort(attempt, rank, "test")
            elif rank == attempt.committer:
                try:
                    votes = ranks[rank].wait_votes(attempt)
                except CheckpointAborted:
                    assert decided.setdefault(attempt.attempt, False) is False  # never aborted after a commit
                else:
                    assert [vote.rank for vote in votes] == list(_RANKS)
                    assert {vote.key for vote in votes} == {manifest_key(5, attempt.attempt, r) for r in _RANKS}
                    assert decided.setdefault(attempt.attempt, True) is True  # never committed after an abort
    return decided


def _launch(store: ObjectStore, generation: int) -> list[StoreCommit]:
    return [StoreCommit(store, rank=r, ranks=_RANKS, generation=generation, deadline_s=1e-9) for r in _RANKS]


def test_impossible_attempts_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="committer 9"):
        SaveAttempt(step=1, epoch=0, attempt="a", generation=0, ranks=(0, 1), committer=9, deadline_s=1.0)
    with pytest.raises(InvalidArgument, match="deadline_s is 0"):
        SaveAttempt(step=1, epoch=0, attempt="a", generation=0, ranks=(0,), committer=0, deadline_s=0.0)
