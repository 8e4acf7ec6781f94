"""docs/reference says what the code says."""

import re
from pathlib import Path

import pytest

from scripts.reference import FOLDER, PAGES

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_says(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "run `make reference`"


def test_the_page_of_the_stream_names_every_event() -> None:
    """The code sends one by `publish("name", …)`, `frame("name", …)` or `Event(seq, topic, "name", …)`."""
    sent = re.compile(r'(?:publish|frame)\(\s*"(\w+)"|Event\(\s*seq,\s*"\w+",\s*"(\w+)"')
    files = (ROOT / "strata" / "observatory").rglob("*.py")
    found = [match for file in files for match in sent.findall(file.read_text(encoding="utf-8"))]
    page = (FOLDER / "sse.md").read_text(encoding="utf-8").partition("| event |")[2]
    assert {first or second for first, second in found} == set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
