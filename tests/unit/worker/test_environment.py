"""Where a process stands, from each launcher's variables."""

import pytest

from strata.errors import InvalidConfig
from strata.worker.environment import checkpoint_path, find_place, gang_address

_TASK = {
    "STRATA_TASK_ID": "t-1",
    "STRATA_WORKER_ID": "t-1-2",
    "STRATA_INCARNATION": "t-1.3.2",
    "STRATA_RANK": "2",
    "STRATA_WORLD_SIZE": "4",
    "STRATA_ATTEMPT": "3",
    "STRATA_CONFIG_JSON": '{"lr": 0.1}',
    "STRATA_DATASET_ID": "ds",
    "STRATA_DATASET_JSON": '{"path": "p"}',
    "RANK": "9",
}


def test_a_task_comes_before_any_other_launcher() -> None:
    place = find_place({**_TASK, "SLURM_JOB_ID": "7", "SLURM_PROCID": "1"})
    assert (place.task_id, place.run_id, place.rank, place.world_size, place.attempt) == ("t-1", "t-1", 2, 4, 3)
    assert (place.config, place.dataset_id, place.dataset) == ({"lr": 0.1}, "ds", {"path": "p"})
    assert checkpoint_path(place).endswith("checkpoints/t-1")


@pytest.mark.parametrize(
    ("variables", "worker_id", "attempt"),
    [
        (
            {
                "TORCHELASTIC_RUN_ID": "abc",
                "RANK": "1",
                "WORLD_SIZE": "2",
                "LOCAL_RANK": "1",
                "TORCHELASTIC_RESTART_COUNT": "3",
            },
            "torchelastic-abc-1",
            3,
        ),
        ({"SLURM_JOB_ID": "77", "SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_LOCALID": "1"}, "slurm-77-1", 0),
        ({"JOB_COMPLETION_INDEX": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}, "job-1-1", 0),
    ],
)
def test_ranks_of_other_launchers_are_taken_from_their_variables(
    variables: dict[str, str], worker_id: str, attempt: int
) -> None:
    place = find_place(variables)
    assert (place.task_id, place.worker_id, place.attempt) == ("", worker_id, attempt)
    assert (place.rank, place.world_size, place.local_rank) == (1, 2, 1)


def test_a_lone_script_is_rank_zero_of_one() -> None:
    place = find_place({})
    assert (place.task_id, place.group, place.rank, place.world_size) == ("", "", 0, 1)


def test_a_bad_number_is_named() -> None:
    with pytest.raises(InvalidConfig, match="STRATA_RANK = 'two' is not a whole number"):
        find_place({**_TASK, "STRATA_RANK": "two"})


@pytest.mark.parametrize(
    ("bucket", "path"),
    [
        ("box", "s3://box/t-1"),
        ("s3://box", "s3://box/t-1"),
        ("gs://box/below/", "gs://box/below/t-1"),
        ("az://box", "az://box/t-1"),
    ],
)
def test_a_bucket_may_say_its_cloud(monkeypatch: pytest.MonkeyPatch, bucket: str, path: str) -> None:
    monkeypatch.setenv("STORAGE_BACKEND", "s3")
    monkeypatch.setenv("CHECKPOINT_BUCKET", bucket)
    assert checkpoint_path(find_place(_TASK)) == path


def test_ranks_that_nobody_told_where_to_meet_are_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STRATA_GANG_PORT", "MASTER_PORT", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    assert gang_address(1)[0] == "127.0.0.1"
    with pytest.raises(InvalidConfig, match="export MASTER_ADDR=… MASTER_PORT=29500"):
        gang_address(2)
    monkeypatch.setenv("MASTER_PORT", "29500")
    assert gang_address(2) == ("127.0.0.1", 29501)
    monkeypatch.setenv("STRATA_GANG_PORT", "20007")
    assert gang_address(2) == ("127.0.0.1", 20007)
