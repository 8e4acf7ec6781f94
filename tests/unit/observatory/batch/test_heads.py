"""Heads that came before are recognised by their bytes, and only when they are the same."""

import random

import pytest

from strata.errors import InvalidArgument
from strata.observatory.batch.heads import HeadMemory, HeadTable
from strata.protocol.generated.telemetry_pb2 import Batch


def batch(count: int, *, run_id: str = "r", batch_id: str = "b1", step: int = 0) -> Batch:
    message = Batch(batch_id=batch_id)
    for index in range(count):
        message.series.add(index=index, run_id=run_id, metric=f"m{index}", device=65535)
    message.points.series.extend(range(count))
    message.points.step.extend([step] * count)
    message.points.event_time_ms.extend([1_794_000_000_000] * count)
    message.points.value.extend([0.5] * count)
    return message


def table(memory: HeadMemory, message: Batch) -> HeadTable:
    return memory.table(message, message.SerializeToString())


def test_the_same_heads_are_one_table_whatever_else_the_batch_holds() -> None:
    memory = HeadMemory()
    first = table(memory, batch(40, batch_id="b1"))
    assert table(memory, batch(40, batch_id="another-id", step=9)) is first
    assert [head.key.metric for head in first.heads] == [f"m{index}" for index in range(40)]


def test_a_batch_that_names_fewer_or_more_series_is_read_anew() -> None:
    memory = HeadMemory()
    table(memory, batch(40))
    for count in (39, 41, 40):
        assert [head.key.metric for head in table(memory, batch(count)).heads] == [f"m{n}" for n in range(count)]


def test_any_change_of_any_head_is_seen() -> None:
    """Random edits against what reading the message itself says."""
    chance, memory = random.Random(1), HeadMemory()
    for _ in range(300):
        message = batch(20, run_id=chance.choice(["r", "s"]))
        for _ in range(chance.randint(0, 2)):
            one = message.series[chance.randrange(20)]
            match chance.randrange(4):
                case 0:
                    one.metric = chance.choice(["loss", "lr"])
                case 1:
                    one.rank = chance.randrange(3)
                case 2:
                    one.unit = chance.choice(["s", ""])
                case _:
                    one.index = chance.choice([one.index, 77])
        found, plain = table(memory, message), HeadMemory().table(message, None)
        assert found.heads == plain.heads
        assert found.numbers.tolist() == plain.numbers.tolist()


def test_series_behind_the_points_are_not_mistaken_for_known_ones() -> None:
    """Encoders may write fields in any order, and in several pieces."""
    memory = HeadMemory()
    known = batch(20)
    table(memory, known)
    late = Batch()
    late.series.add(index=20, run_id="r", metric="late", device=65535)
    raw = known.SerializeToString() + late.SerializeToString()
    assert [head.key.metric for head in memory.table(Batch.FromString(raw), raw).heads][-1] == "late"


def test_what_is_forgotten_is_read_again() -> None:
    memory = HeadMemory(max_bytes=2_000)
    first = table(memory, batch(40, run_id="first"))
    for number in range(5):
        table(memory, batch(40, run_id=f"other-{number}"))
    again = table(memory, batch(40, run_id="first"))
    assert again is not first
    assert again.heads == first.heads


def test_a_bad_name_is_refused_every_time() -> None:
    memory, message = HeadMemory(), batch(20)
    message.series[7].metric = "lo\nss"
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="metric"):
            table(memory, message)
