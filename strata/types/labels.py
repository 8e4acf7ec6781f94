"""What people and scripts call a run beside its name: tags, group, job type, notes. One rule for all who write them."""

from collections.abc import Iterable
from typing import Any

from strata.errors import InvalidArgument
from strata.types.shown import check_text

__all__ = ["MAX_LABEL", "MAX_NOTES", "MAX_TAGS", "check_label", "check_notes", "check_tag", "check_tags", "tags_of"]

MAX_LABEL = 255
MAX_NOTES = 20_000
MAX_TAGS = 100
_MAX_TAG = 64


def check_tag(tag: str) -> str:
    """A tag is short and is printed in one piece."""
    if not tag or len(tag) > _MAX_TAG or not tag.isprintable() or tag != tag.strip():
        raise InvalidArgument(f"tag {tag[:80]!a} is not 1 to {_MAX_TAG} printable characters without spaces around")
    return tag


def check_tags(tags: Iterable[str]) -> list[str]:
    """Each once, in the order given."""
    given = list(dict.fromkeys(check_tag(tag) for tag in tags))
    if len(given) > MAX_TAGS:
        raise InvalidArgument(f"there are {len(given)} tags, at most {MAX_TAGS} are kept")
    return given


def tags_of(given: Any) -> tuple[str, ...]:
    """One tag, or any number of them; None is none."""
    return (given,) if isinstance(given, str) else tuple(str(tag) for tag in given or ())


def check_label(name: str, text: str) -> str:
    """Of one line: a name, a group, a job type."""
    text = check_text(name, text.strip(), MAX_LABEL)
    return _printable(name, text, "")


def check_notes(text: str) -> str:
    return _printable("notes", check_text("notes", text, MAX_NOTES), "\n\t")


def _printable(name: str, text: str, spaces: str) -> str:
    bad = next((char for char in text if not char.isprintable() and char not in spaces), None)
    if bad is not None:
        raise InvalidArgument(f"{name} holds the unprintable character {bad!r}")
    return text
