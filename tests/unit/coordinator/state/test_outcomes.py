"""How barriers ended, as bytes of the journal."""

from dataclasses import replace

import pytest

from strata.cluster.events import BarrierBroke, BarrierReleased, decode_event, encode_event
from strata.coordinator.state.outcomes import Outcome, encode_outcome

RELEASED = BarrierReleased(
    task_id="t",
    barrier_id="b",
    step=2**63 - 1,
    round=1,
    generation=3,
    worker_ids=("w0", "w1"),
    request_ids=("r",),
    absent=(),
    created_at=1700000000.123,
    at=0.1 + 0.2,
)
BROKE = BarrierBroke(
    task_id="",
    barrier_id="b",
    step=-1,
    round=2,
    generation=3,
    worker_ids=(),
    request_ids=(),
    missing=("w",),
    reason='it said "no"\n',
    expired=True,
    total=2,
    created_at=0.0,
    at=1e22,
)
ODD = ('"', "\\", "\n\t\x00\x1f\x7f", "ä\u2028\U0001f600", "a,b", "", "/")


@pytest.mark.parametrize(
    "event", [RELEASED, BROKE, replace(RELEASED, worker_ids=ODD, absent=ODD), replace(BROKE, barrier_id=ODD[3])]
)
def test_they_are_written_as_every_event_is(event: Outcome) -> None:
    body = b"".join(encode_outcome(event))
    assert decode_event(type(event).__name__, body) == event == decode_event(type(event).__name__, encode_event(event))
