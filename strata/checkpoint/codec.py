"""A training state as a tree of JSON plus its arrays, and back. A value that is neither an array nor JSON is refused by
name.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from strata.checkpoint.arrays import ArraySource, array_source
from strata.errors import UnsupportedState
from strata.types.shown import check_text

__all__ = ["array_nodes", "check_json", "decode", "encode", "kinds"]

_MAX_DEPTH = 100
_MARKS = ("$array", "$tuple", "$map", "$float", "$complex")


def encode(state: Any) -> tuple[Any, dict[str, ArraySource]]:
    """The tree, and the arrays by name. A name is the path of keys joined by '/', so a flat dict keeps its own
    names."""
    arrays: dict[str, ArraySource] = {}
    return _encode(state, "", arrays, 0), arrays


def _encode(value: Any, path: str, arrays: dict[str, ArraySource], depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise UnsupportedState(f"{_shown(path)} lies more than {_MAX_DEPTH} levels deep, or holds itself")
    if value is None or isinstance(value, bool) or type(value) is int:
        return value
    if isinstance(value, str):
        return check_text(_shown(path), value)
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if type(value) is complex:
        return {"$complex": [_encode(part, path, arrays, depth) for part in (value.real, value.imag)]}
    source = array_source(_shown(path), value)
    if source is not None:
        name = _unused(path or "data", arrays)
        arrays[name] = source
        return {"$array": name, "kind": source.kind}
    if isinstance(value, Mapping):
        return _encode_mapping(value, path, arrays, depth)
    if type(value) in (list, tuple):
        items = [_encode(item, _below(path, index), arrays, depth + 1) for index, item in enumerate(value)]
        return items if type(value) is list else {"$tuple": items}
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise UnsupportedState(
        f"{_shown(path)} is a {kind}, which cannot be stored without pickle",
        hint="Store arrays, bytes, numbers, strings, lists, tuples and dicts of them; call .state_dict() on objects.",
    )


def _encode_mapping(value: Mapping[Any, Any], path: str, arrays: dict[str, ArraySource], depth: int) -> Any:
    for key in value:
        if isinstance(key, str) and not key.isascii():
            check_text(f"the key {key!r} of {_shown(path)}", key)
    plain = all(type(key) is str for key in value) and not any(mark in value for mark in _MARKS)
    if plain:
        return {key: _encode(item, _below(path, key), arrays, depth + 1) for key, item in value.items()}
    pairs = []
    for key, item in value.items():
        if not (key is None or type(key) in (bool, int, float, str)):
            raise UnsupportedState(f"{_shown(path)} has the key {key!r}; keys must be strings or numbers")
        pairs.append([key, _encode(item, _below(path, key), arrays, depth + 1)])
    return {"$map": pairs}


def decode(tree: Any, arrays: Mapping[str, Any]) -> Any:
    """The state as it was saved, with `arrays` (already restored) put back in their places."""
    if isinstance(tree, list):
        return [decode(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "$array" in tree:
        return arrays[tree["$array"]]
    if "$tuple" in tree:
        return tuple(decode(item, arrays) for item in tree["$tuple"])
    if "$map" in tree:
        return {key: decode(item, arrays) for key, item in tree["$map"]}
    if "$float" in tree:
        return float(tree["$float"])
    if "$complex" in tree:
        real, imag = (decode(part, arrays) for part in tree["$complex"])
        return complex(real, imag)
    return {key: decode(item, arrays) for key, item in tree.items()}


def array_nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """The places of a tree at which an array stands."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending.extend(node)
        elif isinstance(node, dict):
            if "$array" in node:
                yield node
            else:
                pending.extend(node.values())


def kinds(tree: Any) -> dict[str, str]:
    """The kind of each array named in a tree."""
    return {node["$array"]: node["kind"] for node in array_nodes(tree)}


def check_json(what: str, value: Any, depth: int = 0) -> Any:
    """Refuses what plain JSON would lose, naming the place: for metadata and data cursors, which other tools read
    too."""
    if value is None or type(value) in (bool, int):
        return value
    if type(value) is str:
        return check_text(what, value)
    if type(value) is float:
        if math.isfinite(value):
            return value
        raise UnsupportedState(
            f"{what} is {value}, which JSON has no word for", hint="Store it as a string or leave it out."
        )
    if depth < _MAX_DEPTH and isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {
            check_text(f"a key of {what}", key): check_json(f"{what}[{key!r}]", item, depth + 1)
            for key, item in value.items()
        }
    if depth < _MAX_DEPTH and isinstance(value, list | tuple):
        return [check_json(f"{what}[{index}]", item, depth + 1) for index, item in enumerate(value)]
    raise UnsupportedState(
        f"{what} is a {type(value).__qualname__}; only JSON values (with string keys) can be stored there",
        hint="Convert it to numbers, strings, lists or dicts.",
    )


def _below(path: str, key: Any) -> str:
    return f"{path}/{key}" if path else str(key)


def _shown(path: str) -> str:
    return f"state[{path!r}]" if path else "the state"


def _unused(name: str, arrays: Mapping[str, ArraySource]) -> str:
    """A free name for an array. Two paths may spell alike ({'a/b': x} and {'a': {'b': y}}), so the later one gets a
    suffix; the tree records it."""
    candidate, number = name, 1
    while candidate in arrays or candidate == "__metadata__":
        number += 1
        candidate = f"{name}~{number}"
    return candidate
