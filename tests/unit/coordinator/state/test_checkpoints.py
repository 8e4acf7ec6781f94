"""Two-phase checkpoints: one attempt per step, votes that stay, a pen that is passed on, and aborts that name ranks."""

import json
import math

import pytest

from strata.cluster import events as e
from strata.coordinator.state import commands as c
from strata.coordinator.state.attempts import Verdict
from strata.coordinator.state.checkpoints import CHECKED, REMOVED
from strata.coordinator.state.cluster import ClusterState
from strata.errors import CheckpointAborted, CheckpointNotFound, Fenced, InvalidArgument, Refused, UnknownWorker
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.checkpoints import CheckpointStatus, checkpoint_id_of
from tests.support.pure_cluster import PureCluster, caller


@pytest.fixture
def cluster() -> PureCluster:
    cluster = PureCluster()
    cluster.submit("t", worker_count=3)
    cluster.join_all("a", "b", "c", task_id="t")
    return cluster


def prepared(cluster: PureCluster, step: int = 10) -> str:
    attempt = cluster.begin("a", step).attempt
    for name in "abc":
        cluster.vote(name, attempt)
    return attempt


def notify(cluster: PureCluster, worker_id: str, **values: object) -> object:
    asked = {"checkpoint_id": "k", "step": 7, "epoch": 1, "storage_path": "s3://b/k", "size_bytes": 9, **values}
    return cluster.ask(c.NotifyCheckpoint(caller=caller(worker_id), **asked))  # type: ignore[arg-type]  # by name


def test_all_ranks_join_one_attempt(cluster: PureCluster) -> None:
    first = cluster.begin("b")
    assert first.ranks == (0, 1, 2)
    assert cluster.begin("a") is first
    assert cluster.begin("b") is first
    assert cluster.begin("b", step=20).attempt != first.attempt
    assert len(cluster.happened(e.CheckpointBegun)) == 2


def test_it_is_prepared_when_every_rank_has_voted_and_then_committed(cluster: PureCluster) -> None:
    attempt = cluster.begin("a").attempt
    assert cluster.vote("a", attempt).unvoted() == (1, 2)
    assert cluster.vote("b", attempt).verdict is Verdict.UNDECIDED
    ready = cluster.vote("c", attempt)
    assert (ready.verdict, ready.committer) == (Verdict.PREPARED, 0)
    assert cluster.state.checkpoints.latest("t") is None
    assert cluster.commit("a", attempt).verdict is Verdict.COMMITTED
    latest = cluster.state.checkpoints.latest("t")
    assert latest is not None
    assert (latest.step, latest.size_bytes, latest.status) == (10, 15, CheckpointStatus.COMPLETED)
    assert latest.throughput == pytest.approx(15 / 2.0 / 1e6)


def test_votes_and_commits_repeated_are_harmless(cluster: PureCluster) -> None:
    attempt = prepared(cluster)
    cluster.vote("b", attempt)
    cluster.commit("a", attempt)
    cluster.commit("a", attempt)
    cluster.vote("b", attempt)
    assert len(cluster.happened(e.CheckpointVoted)) == 3
    assert len(cluster.happened(e.CheckpointCommitted)) == 1


def test_the_next_save_of_a_committed_step_is_a_new_attempt(cluster: PureCluster) -> None:
    attempt = prepared(cluster)
    cluster.commit("a", attempt)
    again = cluster.begin("a")
    assert again.attempt != attempt
    assert again.verdict is Verdict.UNDECIDED


def test_a_step_saved_again_takes_the_place_of_the_older_one(cluster: PureCluster) -> None:
    cluster.commit("a", prepared(cluster))
    (older,) = cluster.state.cluster.checkpoints.records.values()
    again = prepared(cluster)
    assert cluster.state.cluster.checkpoints.records[older.id].status is CheckpointStatus.COMPLETED, (
        "until it is committed"
    )
    cluster.commit("a", again)
    replaced, newer = cluster.state.cluster.checkpoints.records.values()
    assert (replaced.status, newer.status) == (CheckpointStatus.REMOVED, CheckpointStatus.COMPLETED)
    assert replaced.reason == f"replaced by {newer.id}"


def test_a_death_before_the_last_vote_aborts_it_and_names_the_ranks(cluster: PureCluster) -> None:
    attempt = cluster.begin("a").attempt
    cluster.vote("a", attempt)
    cluster.lose("b", reason="killed by signal 9")
    aborted = cluster.happened(e.CheckpointAborted)[0]
    assert aborted.missing == (1, 2)
    assert aborted.reason == "rank 1 (b): killed by signal 9"
    with cluster.refuses(CheckpointAborted, "step 10 was aborted: rank 1"):
        cluster.vote("c", attempt)
    with cluster.refuses(CheckpointAborted):
        cluster.commit("a", attempt)
    record = next(iter(cluster.state.cluster.checkpoints.records.values()))
    assert (record.status, record.reason) == (CheckpointStatus.FAILED, "rank 1 (b): killed by signal 9")
    assert cluster.begin("a").attempt != attempt


def test_a_death_after_the_last_vote_passes_the_pen(cluster: PureCluster) -> None:
    attempt = prepared(cluster)
    cluster.lose("a")
    known = cluster.state.checkpoints.attempts[attempt]
    assert (known.verdict, known.committer) == (Verdict.PREPARED, 1)
    cluster.lose("c")
    assert known.committer == 1
    assert cluster.commit("b", attempt).verdict is Verdict.COMMITTED


def test_when_all_are_dead_it_is_given_up_but_its_commit_is_still_believed(cluster: PureCluster) -> None:
    attempt = prepared(cluster)
    cluster.lose("a", "b", "c")
    assert cluster.state.checkpoints.attempts[attempt].verdict is Verdict.ABORTED
    cluster.join("a", task_id="t")
    assert cluster.commit("a", attempt).verdict is Verdict.COMMITTED, "COMMIT.json alone decides"


def test_a_prepared_attempt_of_a_world_that_is_gone_is_not_joined(cluster: PureCluster) -> None:
    attempt = prepared(cluster)
    assert cluster.begin("b").attempt == attempt
    cluster.lose("c")
    cluster.join("c", task_id="t")
    assert cluster.begin("b").attempt != attempt


def test_the_deadline_aborts_what_lacks_votes_and_names_them(cluster: PureCluster) -> None:
    attempt = cluster.begin("a", deadline_s=20.0).attempt
    cluster.vote("b", attempt)
    cluster.pass_time(19)
    cluster.beat("a", "b", "c")
    assert cluster.state.checkpoints.attempts[attempt].open
    cluster.pass_time(1)
    aborted = cluster.happened(e.CheckpointAborted)[0]
    assert (aborted.missing, aborted.reason) == ((0, 2), "not complete within 20 s")


def test_the_deadline_of_a_prepared_one_passes_the_pen_and_aborts_nothing(cluster: PureCluster) -> None:
    attempt = prepared(cluster)
    for committer in (1, 0, 1):
        for _ in range(6):
            cluster.beat("a", "b", "c")
            cluster.pass_time(10)
        known = cluster.state.checkpoints.attempts[attempt]
        assert (known.verdict, known.committer) == (Verdict.PREPARED, committer)
    assert cluster.commit("a", attempt).verdict is Verdict.COMMITTED


def test_a_rank_may_give_up(cluster: PureCluster) -> None:
    attempt = cluster.begin("a").attempt
    reply = cluster.ask(c.AbortCheckpoint(caller=caller("c"), attempt=attempt, reason="disk full"))
    assert (reply.verdict, reply.reason) == (Verdict.ABORTED, "rank 2 (c) gave up: disk full")
    done = prepared(cluster, 20)
    assert cluster.ask(c.AbortCheckpoint(caller=caller("c"), attempt=done, reason="x")).verdict is Verdict.PREPARED


def test_the_elastic_group_saves_with_whoever_is_there() -> None:
    cluster = PureCluster()
    cluster.join_all("a", "b")
    attempt = cluster.begin("a")
    assert attempt.ranks == (0, 1)
    cluster.join("c")
    with cluster.refuses(InvalidArgument, "cannot vote as rank 2"):
        cluster.vote("c", attempt.attempt)


def test_a_deadline_is_fresh_after_a_restart(cluster: PureCluster) -> None:
    attempt = cluster.begin("a", deadline_s=20.0).attempt
    cluster.clock.advance(1000)
    cluster.restart()
    cluster.pass_time(19)
    assert cluster.state.checkpoints.attempts[attempt].open
    cluster.pass_time(2)
    assert not cluster.state.checkpoints.attempts[attempt].open


def test_an_old_generation_cannot_begin_or_vote_but_may_report_its_commit(cluster: PureCluster) -> None:
    generation = cluster.generation("t")
    attempt = prepared(cluster)
    cluster.lose("c")
    with cluster.refuses(Fenced, f"generation {generation}"):
        cluster.begin("a", caller=caller("a", generation=generation))
    cluster.ask(c.CommitCheckpoint(caller=caller("a", generation=generation), attempt=attempt))
    assert len(cluster.happened(e.CheckpointCommitted)) == 1


def test_wrong_voters_are_refused(cluster: PureCluster) -> None:
    cluster.join("stranger")
    attempt = cluster.begin("a").attempt
    cluster.vote("a", attempt)
    with cluster.refuses(Refused, "rank 0 has voted in attempt .* with another manifest"):
        cluster.vote("a", attempt, manifest_hash="other")
    with cluster.refuses(InvalidArgument, "cannot vote as rank 0"):
        cluster.vote("stranger", attempt)
    with cluster.refuses(Refused, r"without the votes of ranks 1, 2"):
        cluster.commit("a", attempt)
    with cluster.refuses(InvalidArgument, "does not belong"):
        cluster.commit("stranger", attempt)
    with cluster.refuses(CheckpointNotFound, "no checkpoint attempt 'nope'"):
        cluster.vote("a", "nope")


@pytest.mark.parametrize("values", [{"size_bytes": -1}, {"duration_s": -1.0}, {"duration_s": math.nan}])
def test_a_vote_with_impossible_numbers_is_refused(cluster: PureCluster, values: dict[str, float]) -> None:
    attempt = cluster.begin("a").attempt
    with cluster.refuses(InvalidArgument):
        cluster.vote("a", attempt, **values)


@pytest.mark.parametrize(
    "values", [{"step": -1}, {"epoch": -1}, {"deadline_s": 0.0}, {"deadline_s": math.nan}, {"deadline_s": math.inf}]
)
def test_a_bad_begin_is_refused(cluster: PureCluster, values: dict[str, float]) -> None:
    with cluster.refuses(InvalidArgument):
        cluster.begin("a", **values)  # type: ignore[arg-type]  # wrong on purpose


def test_a_duration_too_short_to_measure_gives_no_rate(cluster: PureCluster) -> None:
    attempt = cluster.begin("a").attempt
    for name in "abc":
        cluster.vote(name, attempt, duration_s=5e-324, size_bytes=10**12)
    cluster.commit("a", attempt)
    latest = cluster.state.checkpoints.latest("t")
    assert latest is not None
    assert latest.throughput is None


def test_a_long_task_name_makes_a_valid_checkpoint_id() -> None:
    cluster = PureCluster()
    cluster.join("a", task_id="t" * 128)
    assert len(cluster.begin("a", step=2**62).checkpoint_id) <= 128


def test_a_plain_worker_notifies_and_recovers() -> None:
    cluster = PureCluster()
    cluster.join("a")
    assert notify(cluster, "a") == 7
    assert notify(cluster, "a", checkpoint_id="older", step=3) == 7
    reply = cluster.ask(c.Recover(caller=caller("a")))
    assert reply.checkpoint is not None
    assert (reply.checkpoint.id, reply.checkpoint.step) == ("k", 7)


@pytest.mark.parametrize(
    "values",
    [
        {"checkpoint_id": ""},
        {"checkpoint_id": "x" * 10_000_000},
        {"step": -1},
        {"epoch": -1},
        {"size_bytes": -1},
        {"duration_s": -1.0},
        {"duration_s": math.nan},
    ],
)
def test_a_bad_notice_is_refused(cluster: PureCluster, values: dict[str, object]) -> None:
    with cluster.refuses(InvalidArgument):
        notify(cluster, "a", **values)


def test_unknown_callers_are_refused(cluster: PureCluster) -> None:
    with cluster.refuses(UnknownWorker):
        notify(cluster, "nobody")
    with cluster.refuses(UnknownWorker):
        cluster.begin("nobody")


def test_old_records_are_forgotten_but_never_a_task_s_newest() -> None:
    cluster = PureCluster()
    cluster.join("quiet", task_id="q")
    cluster.join("busy")
    notify(cluster, "quiet", checkpoint_id="precious")
    for step in range(2_050):
        event = e.CheckpointCommitted(
            checkpoint_id=f"busy-{step}",
            task_id="",
            attempt="",
            worker_id="busy",
            step=step,
            epoch=0,
            storage_path="",
            size_bytes=1,
            type=0,
            duration_s=None,
            metadata={},
            at=1.0,
        )
        cluster.state.evolve(event, cluster.now())
    records = cluster.state.cluster.checkpoints.records
    assert len(records) == 2_000
    assert "busy-0" not in records
    newest = cluster.state.checkpoints.latest("q")
    assert newest is not None
    assert newest.id == "precious"


def test_a_deleted_checkpoint_is_complete_no_more(cluster: PureCluster) -> None:
    for step in (10, 20):
        attempt = cluster.begin("a", step, storage_path=f"s3://b/step-{step}").attempt
        for name in "abc":
            cluster.vote(name, attempt)
        cluster.commit("a", attempt)
    gone = {"checkpoint_id": "", "size_bytes": 0, "type": REMOVED, "metadata": {"reason": "keep_count is 1"}}
    assert notify(cluster, "a", step=10, storage_path="s3://b/step-10", **gone) == 20
    assert notify(cluster, "a", step=10, storage_path="s3://b/step-10", **gone) == 20
    (event,) = cluster.happened(e.CheckpointRemoved)
    first, second = cluster.state.cluster.checkpoints.records.values()
    assert (event.checkpoint_ids, event.reason) == ((first.id,), "keep_count is 1")
    assert (first.status, first.reason) == (CheckpointStatus.REMOVED, "keep_count is 1")
    assert second.status is CheckpointStatus.COMPLETED
    notify(cluster, "b", step=20, storage_path="s3://b/step-20", **gone)
    assert cluster.state.checkpoints.latest("t") is None


def test_nobody_removes_the_checkpoints_of_another_task(cluster: PureCluster) -> None:
    cluster.commit("a", prepared(cluster))
    cluster.join_all("plain")
    assert notify(cluster, "plain", checkpoint_id="", type=REMOVED, storage_path="s3://b/step") == 7
    assert not cluster.happened(e.CheckpointRemoved)
    assert cluster.state.checkpoints.latest("t") is not None


def test_the_type_that_says_removed_is_the_one_of_the_wire() -> None:
    assert pb.CheckpointInfo.REMOVED == REMOVED


def test_a_checkpoint_has_the_name_that_its_store_gives_it(cluster: PureCluster) -> None:
    attempt = cluster.begin("a", 10)
    assert attempt.checkpoint_id == checkpoint_id_of(10, attempt.attempt) == f"step-000000000010.{attempt.attempt}"


def test_a_check_is_noted_and_a_damaged_one_is_not_gone_back_to(cluster: PureCluster) -> None:
    """By its own ranks, or by a person who names an id or, for one of an earlier release, a path."""
    for step in (10, 20):
        notify(cluster, "a", checkpoint_id=f"k{step}", step=step, storage_path=f"s3://b/{step}")
    newest = cluster.state.checkpoints.latest("t")
    assert newest is not None
    told = {"checkpoint_id": newest.id, "storage_path": newest.path, "type": CHECKED}
    notify(cluster, "a", **told)
    assert cluster.state.cluster.checkpoints.records[newest.id].verified is True
    for _ in range(2):
        notify(cluster, "b", **told, metadata={"damage": "chunk 3 of a file"})
    assert [event.damage for event in cluster.happened(e.CheckpointVerified)] == ["", "chunk 3 of a file"]
    before = cluster.state.checkpoints.latest("t")
    assert before is not None
    assert before.step == 10
    assert cluster.ask(c.NoteCheck(checkpoint_id="other", storage_path=newest.path, damage="")) is True
    assert cluster.state.checkpoints.latest("t") == cluster.state.cluster.checkpoints.records[newest.id]
    assert cluster.ask(c.NoteCheck(checkpoint_id="other", storage_path="", damage="")) is False
    dumped = json.loads(json.dumps(cluster.state.dump()))
    again = ClusterState(cluster.config)
    again.load(dumped, cluster.now())
    assert again.cluster.checkpoints.records == cluster.state.cluster.checkpoints.records


def test_a_worker_speaks_of_its_own_task_only(cluster: PureCluster) -> None:
    cluster.commit("a", prepared(cluster))
    newest = cluster.state.checkpoints.latest("t")
    assert newest is not None
    cluster.join("plain")
    notify(cluster, "plain", checkpoint_id=newest.id, storage_path="", type=CHECKED, metadata={"damage": "no"})
    assert cluster.state.cluster.checkpoints.records[newest.id].verified is None
