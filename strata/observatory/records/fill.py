"""Answers made of our own records: what both call by the same name is taken over, and only the rest is spelled out."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

from strata.observatory.records.times import to_ms, to_s

__all__ = ["fill"]

_Answer = TypeVar("_Answer")
_Take = Callable[[tuple[Any, ...], dict[str, Any]], Any]
# How to find each field, by the answer, the kinds of its sources and the names that are told.
_plans: dict[tuple[Any, ...], dict[str, _Take]] = {}


def fill(answer: type[_Answer], *sources: object, **told: Any) -> _Answer:
    """Each field is what is told, else what the first source has that knows its name. A text that may be null is null
    when it is empty. A time in seconds gives both its forms, `<name>` and `<name>_ms`; so does one in milliseconds."""
    kinds = (answer, tuple(map(type, sources)), tuple(told))
    plan = _plans.get(kinds)
    if plan is None:
        hints = get_type_hints(answer)
        plan = _plans[kinds] = {one.name: _plan(one.name, hints, sources, told) for one in fields(answer)}  # type: ignore[arg-type]
    return answer(**{name: take(sources, told) for name, take in plan.items()})


def _plan(name: str, hints: dict[str, Any], sources: tuple[object, ...], told: dict[str, Any]) -> _Take:
    seconds, milliseconds = name.removesuffix("_ms"), f"{name}_ms"
    if milliseconds in told:
        return _changed(milliseconds, _whole_seconds, sources, told)
    if milliseconds in hints:
        return _changed(name, to_s, sources, told)
    if name != seconds and name not in told:
        return _changed(seconds, to_ms, sources, told)
    if hints[name] == str | None:
        return _changed(name, _or_null, sources, told)
    return _found(name, sources, told)


def _changed(name: str, change: Callable[[Any], Any], sources: tuple[object, ...], told: dict[str, Any]) -> _Take:
    take = _found(name, sources, told)
    return lambda sources, told: change(take(sources, told))


def _found(name: str, sources: tuple[object, ...], told: dict[str, Any]) -> _Take:
    if name in told:
        return lambda _, told: told[name]
    place = next(place for place, source in enumerate(sources) if hasattr(source, name))
    return lambda sources, _: getattr(sources[place], name)


def _whole_seconds(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds // 1000


def _or_null(text: str | None) -> str | None:
    return text or None
