"""Arrow types written as text and read back: schemas travel in manifests and notes, which are plain JSON."""

import re
from collections.abc import Mapping
from typing import Any

from strata.data.table.arrow import arrow
from strata.errors import DataError

__all__ = ["merge_schemas", "parse_type"]

_LIST = re.compile(r"list<(?:item|element): (.*)>")


def parse_type(text: str) -> Any:
    """The Arrow type of a text as `str(type)` writes it; only what text formats can infer."""
    module = arrow()
    simple = {"null": module.null(), "string": module.string(), "bool": module.bool_(), "double": module.float64()}
    if text in simple:
        return simple[text]
    if nested := _LIST.fullmatch(text):
        return module.list_(parse_type(nested[1]))
    if text.startswith("struct<") and text.endswith(">"):
        fields = [part.partition(": ") for part in _split(text[len("struct<") : -1])]
        return module.struct([(name, parse_type(kind)) for name, _, kind in fields])
    return module.type_for_alias(text)


def merge_schemas(schemas: Mapping[str, Mapping[str, str]], *, widen: bool) -> dict[str, str]:
    """One schema for all files, or DataError that names the file, the column and both types.

    With `widen` (formats that guess types from text) numbers may grow: null → int64 → double.
    """
    merged: dict[str, str] = {}
    first = ""
    for file, schema in schemas.items():
        if not first:
            first, merged = file, dict(schema)
            continue
        if set(schema) != set(merged):
            odd = sorted(set(schema) ^ set(merged))
            raise DataError(
                f"{file} has other columns than {first}: {', '.join(map(repr, odd))} is in only one of them",
                file=file,
                hint="All files of a dataset need the same columns; name the ones to read with columns=.",
            )
        for name, kind in schema.items():
            both = _merged(merged[name], kind, widen)
            if both is None:
                raise DataError(f"{file}: column {name!r} is {kind}, but {merged[name]} in {first}", file=file)
            merged[name] = both
    return merged


def _merged(left: str, right: str, widen: bool) -> str | None:
    if left == right:
        return left
    if not widen:
        return None
    pair = {left, right}
    if pair == {"int64", "double"}:
        return "double"
    if "null" in pair:
        return (pair - {"null"}).pop()
    return None


def _split(text: str) -> list[str]:
    """Fields of a struct: commas inside inner brackets do not count."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]
