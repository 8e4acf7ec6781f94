"""Answers made of our own records: what both call by the same name is taken over, and only the rest is spelled out."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, get_type_hints

from strata.observatory.records.times import to_ms, to_s

__all__ = ["fill"]

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class _Plan:
    """`taken`: a field, its source and the attribute there; `changed`: a field, the one it is made of, and how."""

    taken: list[tuple[str, int, str]] = field(default_factory=list)
    changed: list[tuple[str, str, Callable[[Any], Any]]] = field(default_factory=list)


# By the answer, the kinds of its sources and the names that are told.
_plans: dict[tuple[Any, ...], _Plan] = {}


def fill(answer: type[_Answer], *sources: object, **told: Any) -> _Answer:
    """Each field is what is told, else what the first source has that knows its name. A text that may be null is null
    when it is empty. A time in seconds gives both its forms, `<name>` and `<name>_ms`; so does one in milliseconds."""
    kinds = (answer, *map(type, sources), *told)
    plan = _plans.get(kinds)
    if plan is None:
        plan = _plans[kinds] = _plan(answer, sources, told)
    for name, place, attribute in plan.taken:
        told[name] = getattr(sources[place], attribute)
    for name, origin, change in plan.changed:
        told[name] = change(told[origin])
    return answer(**told)


def _plan(answer: Any, sources: tuple[object, ...], told: dict[str, Any]) -> _Plan:
    plan, hints = _Plan(), get_type_hints(answer)
    for name in reversed([one.name for one in fields(answer)]):  # `<name>_ms` is made before its `<name>` is changed
        origin, change = _origin(name, hints, told)
        if origin not in told:
            place = next((place for place, source in enumerate(sources) if hasattr(source, origin)), None)
            if place is None:
                raise TypeError(f"{answer.__name__} has no {name}: neither told nor known to a source")
            plan.taken.append((name, place, origin))
            origin = name
        if change is not None:
            plan.changed.append((name, origin, change))
    return plan


def _origin(name: str, hints: dict[str, Any], told: dict[str, Any]) -> tuple[str, Callable[[Any], Any] | None]:
    """The name under which the value is known, and what must be done with it."""
    seconds, milliseconds = name.removesuffix("_ms"), f"{name}_ms"
    if milliseconds in told:
        return milliseconds, lambda given: None if given is None else given // 1000
    if milliseconds in hints:
        return name, to_s
    if name != seconds and name not in told:
        return seconds, to_ms
    return name, (lambda text: text or None) if hints[name] == str | None else None
