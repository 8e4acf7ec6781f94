"""Keys: sorted by step, parsed back, and nothing of a stranger's is mistaken for ours."""

import pytest

from strata.checkpoint import layout
from strata.errors import InvalidArgument


def test_keys_are_what_the_format_says() -> None:
    assert layout.commit_key(1000) == "step-000000001000/COMMIT.json"
    assert layout.data_key(1000, "4-ab", 3) == "step-000000001000/a-4-ab/rank-00003.safetensors"
    assert layout.manifest_key(1000, "4-ab", 3) == "step-000000001000/a-4-ab/rank-00003.json"
    assert layout.pin_key(7) == "pins/step-000000000007.json"


def test_names_sort_like_steps_and_parse_back() -> None:
    steps = [0, 9, 10, 99_999, 10**11]
    names = [layout.step_folder(step) for step in steps]
    assert sorted(names) == names
    assert [layout.parse_step(name) for name in names] == steps
    assert layout.parse_attempt("step-000000000007/a-4-ab/") == "4-ab"


@pytest.mark.parametrize("name", ["step-7/", "other/", "step-00000000000x/", "step-000000000007.bak", ""])
def test_foreign_names_are_nobodys_step(name: str) -> None:
    assert layout.parse_step(name) is None


def test_impossible_steps_and_attempts_are_refused() -> None:
    for step in (-1, 10**12):
        with pytest.raises(InvalidArgument, match="step is"):
            layout.step_folder(step)
    with pytest.raises(InvalidArgument, match="attempt"):
        layout.attempt_folder(1, "../up")
