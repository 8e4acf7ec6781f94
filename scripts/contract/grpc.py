"""grpc.md: every service and message with its comments, from proto/ through protoc."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
)

from scripts.contract.markdown import code, table
from strata.trust.table import TABLE

__all__ = ["render"]

ROOT = Path(__file__).resolve().parents[2]

_HEAD = """# gRPC

Generated from the comments in `proto/` by `make reference`. The coordinator serves all but `strata.telemetry` on
`STRATA_GRPC_PORT`; the observatory serves `strata.telemetry` on `STRATA_TELEMETRY_PORT`. Both serve gRPC's health and
reflection. Who may call is decided by `strata/trust/table.py`; a rank may name only its own worker and task. The token
goes into the metadata as `authorization: Bearer …`. An error carries its stable code in the trailer `strata-error-code`
([the list](rest.md#errors)), and its message and hint as JSON in `strata-error-bin`.
"""

# Numbers of google/protobuf/descriptor.proto: they make up the paths of comments.
_SYNTAX, _MESSAGE, _ENUM, _SERVICE = 12, 4, 5, 6
_METHOD, _FIELD, _NESTED_ENUM, _VALUE = 2, 2, 4, 2


def render() -> str:
    return _HEAD + "".join(_Page(file).render() for file in _files())


def _files() -> Iterator[FileDescriptorProto]:
    names = [path.name for path in sorted((ROOT / "proto").glob("*.proto"))]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "all"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", f"--descriptor_set_out={out}"]
        subprocess.run([*command, "--include_source_info", *names], check=True)
        found = FileDescriptorSet.FromString(out.read_bytes())
    # The public contract first.
    yield from sorted(found.file, key=lambda file: (file.name != "coordinator.proto", file.name))


class _Page:
    """One proto file as a section."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._comments = {
            tuple(place.path): " ".join(f"{place.leading_comments} {place.trailing_comments}".split())
            for place in file.source_code_info.location
        }

    def render(self) -> str:
        parts = [f"\n## {self._file.package}\n\n`proto/{self._file.name}`. {self._comments.get((_SYNTAX,), '')}\n"]
        for number, service in enumerate(self._file.service):
            rows = [
                (
                    code(method.name),
                    _types(method),
                    self._who(service.name, method),
                    self._said(_SERVICE, number, _METHOD, at),
                )
                for at, method in enumerate(service.method)
            ]
            parts.append(f"\n### Service {service.name}\n\n{table(('call', 'from → to', 'who may', 'meaning'), rows)}")
        parts += [self._message(number, message) for number, message in enumerate(self._file.message_type)]
        return "".join(parts)

    def _who(self, service: str, method: MethodDescriptorProto) -> str:
        return ", ".join(sorted(TABLE[f"/{self._file.package}.{service}/{method.name}"].may))

    def _message(self, number: int, message: DescriptorProto) -> str:
        rows = [
            (str(field.number), code(field.name), code(_type(field, message)), self._said(_MESSAGE, number, _FIELD, at))
            for at, field in enumerate(message.field)
        ]
        said = self._said(_MESSAGE, number)
        enums = "".join(
            self._enum((_MESSAGE, number, _NESTED_ENUM, at), enum) for at, enum in enumerate(message.enum_type)
        )
        fields = table(("", "field", "type", "meaning"), rows) if rows else "No fields.\n"
        return f"\n### {message.name}\n\n" + (f"{said}\n\n" if said else "") + fields + enums

    def _enum(self, path: tuple[int, ...], enum: EnumDescriptorProto) -> str:
        rows = [
            (str(value.number), code(value.name), self._said(*path, _VALUE, at)) for at, value in enumerate(enum.value)
        ]
        return f"\n{code(enum.name)}:\n\n{table(('', 'value', 'meaning'), rows)}"

    def _said(self, *path: int) -> str:
        return self._comments.get(path, "")


def _types(method: MethodDescriptorProto) -> str:
    asked = _short(method.input_type)
    given = _short(method.output_type)
    return (
        f"{'stream ' if method.client_streaming else ''}{asked} → {'stream ' if method.server_streaming else ''}{given}"
    )


def _type(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    name = _short(field.type_name) or FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    entry = next((one for one in message.nested_type if one.options.map_entry and one.name == name), None)
    if entry is not None:
        return f"map<{', '.join(_type(part, entry) for part in entry.field)}>"
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {name}"
    return f"optional {name}" if field.proto3_optional else name


def _short(name: str) -> str:
    return name.rsplit(".", 1)[-1]
