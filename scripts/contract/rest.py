"""rest.md: every route with who may ask, its parameters and its answer, from the app's own OpenAPI schema."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from scripts.contract.markdown import code, table
from strata.errors import StrataError
from strata.observatory.http.app import create_app
from strata.observatory.http.parts import Parts
from strata.trust.table import TABLE

__all__ = ["openapi", "render"]

Json = Mapping[str, Any]

_HEAD = """# REST

Generated from the OpenAPI schema by `make reference`; a running Strata serves the same at `/docs` and `/openapi.json`.
The base is `http://127.0.0.1:3000`. JSON is snake_case, times are Unix seconds. Who may ask is decided by
`strata/trust/table.py`: the owner needs no token on the own machine; elsewhere it goes into `Authorization: Bearer …`.
Every GET may be a HEAD: the same status and headers without the body. The stream of events is in [sse.md](sse.md).

Every error is `{"error": {"code", "message", "hint", "field"}}`; `field` is null where no single one is wrong. Any
route answers 401 or 403 to who may not ask, 422 to parameters or a body that do not fit, 413 to a body that is too
large, and 500 to a bug of ours.
"""
_METHODS = ("get", "post", "put", "patch", "delete")


class _Nothing:
    """Stands for the live parts: routers only keep them, and a schema asks nothing of them."""

    def __getattr__(self, _: str) -> "_Nothing":
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())


def openapi() -> Json:
    """The schema of the whole API, with nothing running."""
    return create_app(cast("Parts", _Nothing())).openapi()


def render() -> str:
    schema = openapi()
    groups: dict[str, list[tuple[str, ...]]] = {}
    for path, item in schema["paths"].items():
        for method in _METHODS:
            if method in item:
                tag = (item[method].get("tags") or ["general"])[0]
                groups.setdefault(tag, []).append(_row(path, method, item[method]))
    heads = ("route", "who may", "parameters", "body", "answer", "meaning")
    parts = [_HEAD, *(f"\n## {tag.capitalize()}\n\n{table(heads, rows)}" for tag, rows in groups.items())]
    return "".join([*parts, _others(schema), _records(schema), _errors()])


def _row(path: str, method: str, operation: Json) -> tuple[str, ...]:
    name = f"{method.upper()} {path}"
    return (
        code(name),
        ", ".join(sorted(TABLE[name].may)) if name in TABLE else "",
        ", ".join(_parameter(one) for one in operation.get("parameters", ()) if one["in"] != "path"),
        _content(operation.get("requestBody", {})),
        _content(next((found for status, found in operation["responses"].items() if status[0] == "2"), {})),
        operation.get("description", ""),
    )


def _others(schema: Json) -> str:
    """What is served beside the schema: pages and Prometheus' text."""
    known = {f"{method.upper()} {path}" for path, item in schema["paths"].items() for method in item}
    rows = [
        (code(name), ", ".join(sorted(rule.may)))
        for name, rule in TABLE.items()
        if name[0] != "/" and name not in known
    ]
    return f"\n## Beside the schema\n\n{table(('route', 'who may'), rows)}"


def _parameter(parameter: Json) -> str:
    default = parameter["schema"].get("default")
    return code(parameter["name"] + (f"={default}" if default is not None else ""))


def _content(body: Json) -> str:
    for media, found in body.get("content", {}).items():
        kind = _type(found.get("schema", {}))
        return kind if media == "application/json" else f"{code(media)} {kind}".strip()
    return ""


def _type(schema: Json) -> str:
    """A type in words: names of records are links to them."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[key]))
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"])
    if "const" in schema:
        return code(str(schema["const"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map of {_type(schema['additionalProperties'])}"
    return str(schema.get("type", ""))


def _records(schema: Json) -> str:
    """Every record that a route takes or gives. FastAPI's own two for errors are not used here."""
    parts = ["\n## Records\n"]
    for name, record in schema.get("components", {}).get("schemas", {}).items():
        if name in ("HTTPValidationError", "ValidationError"):
            continue
        needed = record.get("required", ())
        rows = [
            (code(field), _type(found), "" if field in needed else "optional", found.get("description", ""))
            for field, found in record.get("properties", {}).items()
        ]
        said = record.get("description", "")
        parts.append(f"\n### {name}\n\n" + (f"{said}\n\n" if said else ""))
        parts.append(table(("field", "type", "", "meaning"), rows) if rows else f"{_type(record)}\n")
    return "".join(parts)


def _errors() -> str:
    """Every code with its status, from the tree of errors."""
    found = {one.code: one for one in _all(StrataError)}
    rows = [(code(name), str(int(one.http_status)), _first_line(one)) for name, one in sorted(found.items())]
    return f"\n## Errors\n\nThe same codes are on gRPC and in Python.\n\n{table(('code', 'status', 'meaning'), rows)}"


def _first_line(error: type[StrataError]) -> str:
    return (error.__doc__ or "").strip().split("\n\n")[0]


def _all(error: type[StrataError]) -> Iterator[type[StrataError]]:
    for child in error.__subclasses__():
        if child.__module__ == StrataError.__module__:
            yield child
            yield from _all(child)
