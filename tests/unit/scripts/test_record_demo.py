"""The recording that demo mode plays is of today's API: it is never edited, only made again."""

import copy
import gzip
import json
from typing import Any

import pytest

from scripts.contract.rest import openapi
from scripts.record_demo import OUT
from tests.support.described import Description

AGAIN = "run `python scripts/record_demo.py`"


@pytest.fixture(scope="module")
def recording() -> Any:
    return json.loads(gzip.decompress(OUT.read_bytes()))


def without_what_came_later() -> Description:
    """A field that is newer than the recording is missing in it; one that has another name now must not be there."""
    document = copy.deepcopy(dict(openapi()))
    for record in document["components"]["schemas"].values():
        record.pop("required", None)
        if "properties" in record:
            record["additionalProperties"] = False
    return Description(document)


def test_events_and_answers_are_as_described(recording: Any) -> None:
    api = without_what_came_later()
    for _, name, data in recording["events"]:
        api.check_event(name, json.loads(data))
    for path, answers in recording["answers"].items():
        for _, body in answers:
            api.check_answer(f"/api{path}", json.loads(body))


def test_a_worker_dies_and_comes_back_in_it(recording: Any) -> None:
    assert recording["events"][0][1] == "snapshot"
    kinds = {name for _, name, _ in recording["events"]}
    assert {"snapshot", "delta", "state", "log", "alert"} <= kinds, AGAIN
    states = [json.loads(data) for _, name, data in recording["events"] if name == "state"]
    statuses = {worker["status"] for state in states for worker in state.get("workers", ())}
    assert {"active", "failed", "recovering"} <= statuses, AGAIN


def test_it_names_no_machine(recording: Any) -> None:
    text = json.dumps(recording)
    assert not any(word in text for word in ("/root/", "/home/", "/tmp/")), AGAIN


def test_its_tasks_can_be_told_apart_by_name(recording: Any) -> None:
    (_, body), *_ = recording["answers"]["/dashboard"]
    names = [task["name"] for task in json.loads(body)["tasks"]]
    assert len(names) == len(set(names)) == 2, AGAIN
