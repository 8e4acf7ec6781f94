"""Which beats wait for each other, and what becomes of them: together they say exactly what each of them said."""

import random
from typing import Any

import pytest

from strata.agent.beats import OWN, HeldBeats
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk

_TRAINING = pb.WorkerStatus.TRAINING


def _beat(sequence: int, *, awaited: bool = False, **status: Any) -> rk.RankWords:
    beat = pb.HeartbeatRequest(worker_id="w", timestamp_ms=5, status=pb.WorkerStatus(**status))
    return rk.RankWords(beat=beat, sequence=sequence, awaited=awaited)


def _read(frames: list[ag.TieFrame]) -> dict[int, tuple[int, pb.WorkerStatus]]:
    return {
        tie: (sequence, pb.WorkerStatus.FromString(frame.beats.alike + own))
        for frame in frames
        for tie, sequence, own in zip(frame.beats.ties, frame.beats.sequences, frame.beats.own, strict=True)
    }


def test_every_field_is_told_at_once_or_with_the_next_beat() -> None:
    """One that changes with every step and is not among OWN would make every beat a new one."""
    at_once = {"state", "current_task", "dataset_id", "left", "in_place", "stop_heard", "stop_passed", "asked_to_stop"}
    assert at_once.isdisjoint(OWN)
    assert at_once | set(OWN) == set(pb.WorkerStatus.DESCRIPTOR.fields_by_name)


def test_ranks_that_train_are_one_frame_whatever_step_they_are_at() -> None:
    held = HeldBeats()
    for tie in (3, 1, 2):
        held.add(tie, _beat(tie + 10, state=_TRAINING, current_step=100 + tie, own_time_s=tie / 3, section="eval"))
    (frame,) = held.take()
    assert list(frame.beats.ties) == [1, 2, 3]
    assert list(frame.beats.sequences) == [11, 12, 13]
    assert [said.current_step for _, said in _read([frame]).values()] == [101, 102, 103]
    assert held.take() == []


def test_only_what_says_nothing_new_waits() -> None:
    held = HeldBeats()
    assert held.add(1, _beat(1, state=_TRAINING, current_step=1))  # its first
    assert not held.add(1, _beat(2, state=_TRAINING, current_step=2, step_time_s=0.5, samples_done=9, progress=3.0))
    assert held.add(1, _beat(3, state=_TRAINING, current_step=2, asked_to_stop=True))
    assert not held.add(1, _beat(4, state=_TRAINING, current_step=3, asked_to_stop=True))
    assert held.add(1, _beat(5, state=_TRAINING, current_step=3, asked_to_stop=True, stop_heard=0))
    assert held.add(1, _beat(6, awaited=True, state=_TRAINING, current_step=3, asked_to_stop=True, stop_heard=0))
    ((sequence, status),) = _read(held.take()).values()
    assert (sequence, status.stop_heard, status.HasField("stop_heard")) == (6, 0, True)  # the newest of them


def test_a_tie_that_ended_is_not_known_any_more() -> None:
    held = HeldBeats()
    held.add(1, _beat(1, state=_TRAINING))
    assert 1 in held
    held.forget(1)
    assert 1 not in held
    assert held.take() == []
    assert held.add(1, _beat(1, state=_TRAINING))
    held.clear()
    assert held.take() == []


@pytest.mark.parametrize("seed", range(20))
def test_what_is_put_together_is_what_each_has_said(seed: int) -> None:
    chance, held = random.Random(seed), HeldBeats()
    said = {}
    for tie in range(1, 30):
        status = pb.WorkerStatus(
            state=chance.choice((_TRAINING, pb.WorkerStatus.CHECKPOINTING, 99)),  # type: ignore[arg-type]  # nobody knows it
            current_step=chance.choice((0, -1, 2**63 - 1)),
            current_task=chance.choice(("", "t")),
            section=chance.choice(("", "eval", "ü" * 200)),
            step_time_s=chance.choice((0.0, float("inf"), 1e-300)),
            left=chance.random() < 0.5,
        )
        sequence = chance.choice((0, -1, 2**40))
        said[tie] = sequence, status
        held.add(tie, rk.RankWords(beat=pb.HeartbeatRequest(status=status), sequence=sequence))
    assert _read(held.take()) == said
