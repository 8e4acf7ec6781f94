"""Events survive the journal: every kind, with every field, comes back equal."""

import dataclasses
import json
import typing
from collections.abc import Mapping

import pytest

from strata.cluster.events import EVENT_KINDS, Event, TaskChanged, decode_event, encode_event
from strata.types.faults import Fault, FaultKind

SAMPLES: dict[object, object] = {
    str: 'ä "quoted" \n name',
    int: 2**62,
    float: 1_700_000_000.123456,
    float | None: None,
    int | None: 7,
    bool: True,
    dict[str, str]: {"k": "ü"},
    Mapping[str, str]: {"k": "ü"},
    dict[str, object]: {"k": 1},
    tuple[str, ...]: ("a", "b"),
    tuple[int, ...]: (0, 1),
    tuple[Fault, ...]: (Fault(kind=FaultKind.CRASH, rank=3, agent_id="a"), Fault(kind=FaultKind.GROWN)),
}


def sample(cls: type[Event]) -> Event:
    hints = typing.get_type_hints(cls)
    return cls(**{field.name: SAMPLES[hints[field.name]] for field in dataclasses.fields(cls)})


@pytest.mark.parametrize("kind", sorted(EVENT_KINDS))
def test_it_comes_back_equal(kind: str) -> None:
    event = sample(EVENT_KINDS[kind])
    body = encode_event(event)
    assert decode_event(kind, body) == event
    assert json.loads(body).keys() == {field.name for field in dataclasses.fields(event)}


def test_a_kind_of_a_newer_release_is_named() -> None:
    with pytest.raises(KeyError, match="FromTheFuture"):
        decode_event("FromTheFuture", b"{}")


def test_a_field_that_an_older_release_had_is_passed_over() -> None:
    body = json.dumps({"task_id": "t", "status": "running", "attempt": 1, "reason": "", "at": 1.0, "stuck": True})
    event = decode_event("TaskChanged", body.encode())
    assert isinstance(event, TaskChanged)
    assert event.stuck_rank is None
