"""Writes dashboard/src/api/wire.gen.ts, the types of the REST API as the page uses them; `--check` only says whether it
is out of date. The source is the API's own OpenAPI description, so a field has one name."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.contract.rest import openapi  # noqa: E402  found beside this script

__all__ = ["TARGET", "render"]

TARGET = ROOT / "dashboard" / "src" / "api" / "wire.gen.ts"
_HEAD = "/** Generated from the observatory's answers by `make wire`: never edited by hand. */\n"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}

Json = Mapping[str, Any]


def render(schema: Json) -> str:
    """Every record, then what each route answers and takes."""
    records = [_record(name, found) for name, found in sorted(schema["components"]["schemas"].items())]
    return "\n".join([_HEAD, *records, _routes("Answers", _answers(schema)), _routes("Bodies", _bodies(schema))])


def _record(name: str, schema: Json) -> str:
    said = f"/** {' '.join(schema['description'].split())} */\n" if "description" in schema else ""
    if "properties" not in schema:
        return f"{said}export type {name} = {_type(schema)};\n"
    needed = schema.get("required", ())
    fields = [
        f"  {field}{'' if field in needed else '?'}: {_type(found)};" for field, found in schema["properties"].items()
    ]
    return "\n".join([f"{said}export interface {name} {{", *fields, "}\n"])


def _routes(name: str, found: Iterator[tuple[str, Json]]) -> str:
    rows = [f'  "{route}": {_type(schema)};' for route, schema in found]
    return "\n".join([f"export interface {name} {{", *rows, "}\n"])


def _answers(schema: Json) -> Iterator[tuple[str, Json]]:
    for route, operation in _operations(schema):
        content = operation["responses"]["200"].get("content", {})
        if "application/json" in content:
            yield route, content["application/json"]["schema"]


def _bodies(schema: Json) -> Iterator[tuple[str, Json]]:
    for route, operation in _operations(schema):
        if "requestBody" in operation:
            yield route, operation["requestBody"]["content"]["application/json"]["schema"]


def _operations(schema: Json) -> Iterator[tuple[str, Json]]:
    for path, item in schema["paths"].items():
        if path.startswith("/api/"):  # the others are the same, for clients of the specification
            yield from (
                (f"{method.upper()} {path.removeprefix('/api')}", operation) for method, operation in item.items()
            )


def _type(schema: Json) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(_type(one) for one in options))
    if "const" in schema or "enum" in schema:
        return " | ".join(f'"{word}"' for word in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return f"[{', '.join(_type(one) for one in schema['prefixItems'])}]"
        case "array":
            items = _type(schema["items"])
            return f"({items})[]" if " | " in items else f"{items}[]"
        case "object":
            values = schema.get("additionalProperties", True)
            return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
        case None:
            return "unknown"
        case kind:
            return _PLAIN[kind]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    made = render(openapi())
    if not parser.parse_args().check:
        TARGET.write_text(made, encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == made:
        return 0
    sys.stdout.write(f"{TARGET.relative_to(ROOT)} is not what the API answers: run `make wire`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
