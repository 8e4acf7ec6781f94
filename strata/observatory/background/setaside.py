"""What could not be dealt with and was set aside: a row that the store refuses, a path that cannot be opened, an event
that cannot be read. It is counted, named on the status page and told as an alert, and whoever met it goes on.
"""

import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from strata.clock import Clock
from strata.errors import StrataError
from strata.observatory.answers.status import SetAsideItem, SetAsidePart
from strata.observatory.records.finding import Finding

__all__ = ["SetAside"]

_log = logging.getLogger(__name__)
_KEEP = 200
_SHOWN = 5
_MAX_TEXT = 200


@dataclass(slots=True)
class _Part:
    count: int = 0
    items: OrderedDict[str, SetAsideItem] = field(default_factory=OrderedDict)


class SetAside:
    """One book for all parts, changed on the loop only. `report` tells people and the log, once per part and reason,
    and gives back the alerts that it made."""

    def __init__(self, clock: Clock, report: Callable[[list[Finding]], object]) -> None:
        self._clock = clock
        self._report = report
        self._parts: dict[str, _Part] = {}

    @contextlib.contextmanager
    def guard(self, part: str, item: str) -> Iterator[None]:
        """A failure inside is noted for this item, and the caller goes on. Who tries an item again and succeeds calls
        `clear`."""
        try:
            yield
        except StrataError as error:
            self.note(part, item, error.message)
        except Exception as error:
            _log.exception("%s cannot deal with %s", part, item[:_MAX_TEXT])
            self.note(part, item, f"{type(error).__name__}: {error}")

    def note(self, part: str, item: str, reason: str, count: int = 1) -> None:
        """The same item again is no news. `count`: how many things the item stands for by now."""
        item, reason = _readable(item), _readable(reason)
        book = self._parts.setdefault(part, _Part())
        known = book.items.pop(item, None)
        at_ms = round(self._clock.wall() * 1000)
        book.items[item] = SetAsideItem(item=item, reason=reason, at_ms=at_ms, count=count)
        if len(book.items) > _KEEP:
            book.items.popitem(last=False)
        book.count += count - (known.count if known else 0)
        if known is not None and known.reason == reason:
            return
        text = f"{part} sets {item} aside: {reason}"
        finding = Finding(kind="set_aside", severity="warning", message=text, subject=f"{part}/{reason[:40]}")
        if not self._report([finding]):  # else the alert is in the log
            _log.warning("%s", text)

    def clear(self, part: str, item: str) -> None:
        """The item was dealt with after all: it counts no more."""
        book = self._parts.get(part)
        known = book.items.pop(_readable(item), None) if book else None
        if book is not None and known is not None:
            book.count -= known.count

    def view(self) -> list[SetAsidePart]:
        """Per part: how many, and the newest few."""
        return [
            SetAsidePart(part=name, count=part.count, items=list(reversed(part.items.values()))[:_SHOWN])
            for name, part in self._parts.items()
            if part.count
        ]


def _readable(text: str) -> str:
    """Short, and fit for JSON and for a protobuf string."""
    return text[:_MAX_TEXT].encode(errors="backslashreplace").decode().replace("\x00", "\\x00")
