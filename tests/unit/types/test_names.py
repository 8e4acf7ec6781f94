"""One grammar for names: safe as a path segment, an object key, a URL part and a label."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.errors import InvalidArgument
from strata.types.names import check_metric, check_name, name_of


@pytest.mark.parametrize("name", ["a", "A-1", "epoch-0", "imagenet.1k_v2", "0" * 128])
def test_good_names_pass(name: str) -> None:
    assert check_name("worker_id", name) == name


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "-x", "a/b", "a b", "a\n", "ä", "a" * 129, "a\0"])
def test_bad_names_are_shown_and_explained(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"worker_id .* is not a valid name") as caught:
        check_name("worker_id", name)
    assert "letters, digits" in caught.value.hint


def test_a_huge_name_is_shown_shortened() -> None:
    with pytest.raises(InvalidArgument, match=r"\(10000000 characters\)") as caught:
        check_name("worker_id", "x" * 10_000_000)
    assert len(caught.value.message) < 200


@given(st.text(max_size=200))
def test_whatever_passes_is_safe(name: str) -> None:
    try:
        check_name("n", name)
    except InvalidArgument:
        return
    assert name.isascii()
    assert not set(name) & set("/\\ \n\t\0'\"?#%&")
    assert name not in (".", "..")


@pytest.mark.parametrize("name", ["loss", "train/loss", "sys.gpu.0.util_percent", "acc@5 %"])
def test_metrics_may_hold_more(name: str) -> None:
    assert check_metric(name) == name


@pytest.mark.parametrize("name", ["", "/x", "a\n", "a" * 257, 7, None])
def test_bad_metrics_are_refused(name: Any) -> None:
    with pytest.raises(InvalidArgument, match="not a valid metric name"):
        check_metric(name)


@given(st.text(max_size=300))
def test_whatever_a_file_is_called_becomes_a_name(text: str) -> None:
    assert check_name("run", name_of(text, "other"))


def test_a_name_stays_what_it_is() -> None:
    assert name_of("resnet50_b.v2-", "other") == "resnet50_b.v2-"
    assert name_of("lr=0.1,größe 32", "other") == "lr-0.1-gr--e-32"
    assert name_of("._ü", "other") == "other"
