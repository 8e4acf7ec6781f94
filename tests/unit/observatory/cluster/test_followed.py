"""What the page shows is made anew when an event changes it: no kind of event is forgotten."""

from strata.cluster.events import EVENT_KINDS, CheckpointCommitted, CheckpointVerified
from strata.observatory.cluster import views
from strata.observatory.cluster.followed import CHANGES, FollowedCluster


def test_no_kind_of_event_is_forgotten() -> None:
    assert CHANGES.keys() == set(EVENT_KINDS.values())


def test_a_look_at_all_bytes_is_shown() -> None:
    cluster = FollowedCluster()
    cluster.apply(
        CheckpointCommitted(
            checkpoint_id="c",
            task_id="t",
            attempt="a",
            worker_id="w",
            step=2,
            epoch=0,
            storage_path="s3://b/step-000000000002",
            size_bytes=5,
            type=0,
            duration_s=None,
            metadata={},
            at=1.0,
        )
    )
    for damage, verified in (("", True), ("a chunk of a file", False)):
        cluster.dirty.clear()
        cluster.apply(CheckpointVerified(checkpoint_id="c", task_id="t", step=2, damage=damage, at=3.0))
        assert cluster.dirty == {"checkpoints"}
        (shown,) = views.checkpoints(cluster)
        assert (shown.verified, shown.verified_at_ms, shown.reason) == (verified, 3000, damage or None)
