"""The config of the built-in training: read from JSON or texts, or refused with what is allowed."""

from typing import Any

import pytest

from strata.errors import InvalidArgument
from strata.worker.trainer import TrainingConfig


def test_numbers_of_json_and_texts_of_shells_are_the_same() -> None:
    for given in (64, 64.0, "64"):
        assert TrainingConfig.of({"batch_size": given, "mine": object()}) == TrainingConfig(batch_size=64)
    assert TrainingConfig.of({"seed": 2**60 + 1}).seed == 2**60 + 1
    assert TrainingConfig.of({"learning_rate": 1}).learning_rate == 1.0


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("learning_rate", float("nan"), "a number"),
        ("learning_rate", "nan", "a number"),
        ("learning_rate", "", "a number"),
        ("learning_rate", None, "a number"),
        ("momentum", float("nan"), "a number"),
        ("momentum", 10**400, "a number"),
        ("learning_rate", 0, "a number above 0, and below"),
        ("learning_rate", float("inf"), "a number above 0, and below"),
        ("batch_size", 2**70, "a whole number above 0, and below"),
        ("batch_size", 1.5, "a whole number"),
        ("epochs", float("inf"), "a whole number"),
        ("hidden_size", 0, "a whole number above 0, and below"),
        ("pause_s", -1, "a number from 0 on, and below"),
        ("seed", "\ud800", "a whole number"),
    ],
)
def test_what_is_no_such_number_is_named_with_what_is_allowed(name: str, given: Any, allowed: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        TrainingConfig.of({name: given})
    text = str(caught.value)
    assert text.startswith(f"{name} is {ascii(given)[:60]}")
    assert f", it must be {allowed}" in text
    assert len(text) < 200
    text.encode()  # half a character would break the line that says it
