"""What a task may ask for: how long its ranks may make no step."""

import pytest

from strata.config import load_settings
from strata.errors import InvalidArgument, InvalidConfig
from strata.types.tasks import TaskSpec, read_hang_timeout


def test_a_hang_timeout_is_seconds_or_off() -> None:
    assert [read_hang_timeout(text) for text in ("90", " 3.5 ", "off", "OFF", "0")] == [90.0, 3.5, 0.0, 0.0, 0.0]
    assert TaskSpec(name="t").hang_timeout_s is None


@pytest.mark.parametrize("text", ["", "soon", "90s", "2.9", "-1", "nan", "inf", str(2**70), "1e999", "\udc80"])
def test_a_hang_timeout_that_makes_no_sense_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"hang.timeout"):
        read_hang_timeout(text)


@pytest.mark.parametrize("value", [2.9, -1.0, float("nan"), float("inf"), 2.0**70])
def test_a_task_refuses_it_too(value: float) -> None:
    with pytest.raises(InvalidArgument, match=r"hang_timeout_s is .*, it must be between 3 and 1e\+09 seconds, or 0"):
        TaskSpec(name="t", hang_timeout_s=value)


def test_the_setting_reads_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().hang_timeout is None
    monkeypatch.setenv("STRATA_HANG_TIMEOUT", "off")
    assert load_settings().hang_timeout == 0.0
    assert load_settings({"hang_timeout": "45"}).hang_timeout == 45.0
    monkeypatch.setenv("STRATA_HANG_TIMEOUT", "1")
    with pytest.raises(
        InvalidConfig, match=r"STRATA_HANG_TIMEOUT = '1' is not valid: hang_timeout_s is 1.0, it must be"
    ):
        load_settings()
