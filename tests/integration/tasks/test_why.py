"""`strata why` names the rank and the cause of injected faults, and blames nobody wrongly. Real processes and signals;
`--seeds 20` is the full corpus.
"""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.cluster import strata
from tests.support.faults import KINDS, Corpus, refusing_bucket
from tests.support.hosts import Hosts
from tests.support.small_disk import fill, small_disk
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    folder = tmp_path_factory.mktemp("why")
    os.environ["HEARTBEAT_TIMEOUT"] = "5"
    try:
        with small_disk(folder / "full", 2) as disk, refusing_bucket() as bucket, Hosts(folder) as hosts:
            fill(disk / "filler")
            hosts.start("coordinator", "observatory")
            yield Corpus(hosts, disk, bucket)
    finally:
        del os.environ["HEARTBEAT_TIMEOUT"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_fault_is_named_and_nobody_is_blamed_wrongly(
    corpus: Corpus, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    seeds = request.config.getoption("--seeds")
    outcomes = corpus.inject_all(seeds)
    wrong = [(one.name, one.kinds, one.rank, one.host, one.verdict) for one in outcomes if not one.right]
    assert not [one.verdict for one in outcomes if one.wrongly_blamed], wrong
    assert len(wrong) <= 0.02 * len(outcomes), wrong
    for one in outcomes:
        told = one.verdict
        assert told["sentence"].startswith(told["cause"])
        assert told["sentence"].endswith(told["advice"])
        assert told["rank"] not in told["hit_ranks"]
        assert told["kind"] == "coordinator_restarted" or told["evidence"]
    for name in KINDS:
        record_property(name, f"{sum(one.right for one in outcomes if one.name == name)} of {seeds}")


@pytest.mark.slow
def test_the_command_says_what_rest_says(corpus: Corpus) -> None:
    outcome = corpus.inject("killed", 0)
    task_id = outcome.verdict["task_id"]
    at = outcome.verdict["at_ms"] / 1000
    place = ("--data-dir", str(corpus.hosts.data_dir))

    def alike() -> dict[str, Any] | None:
        """What the command says, once it says the same: points of the last moment may still be on their way."""
        asked = corpus.hosts.get(f"/api/tasks/{task_id}/why?at={at}")
        told: dict[str, Any] = json.loads(strata("why", task_id, "--ago", "1s", "--json", *place).stdout)
        return told if told == asked else None

    told = eventually("the command and REST say the same", alike)
    assert (told["kind"], told["rank"]) == ("killed", outcome.rank)
    shown = strata("why", task_id, *place).stdout
    assert shown.startswith("The task was stopped: ")
    refused = strata("why", "no-such-task", *place)
    assert refused.returncode == 1
    assert "no task 'no-such-task' is known" in refused.stderr
