"""Media of runs: what may be logged beside numbers, how its files are named, and how large they may be. The SDK keeps
to these limits and the observatory checks them.
"""

import hashlib
import re

from strata.errors import InvalidArgument

__all__ = [
    "FILE_TYPES",
    "MAX_ENTRY_BYTES",
    "MAX_ENTRY_FILES",
    "MAX_ROWS",
    "check_file_name",
    "content_type",
    "file_name",
]

MAX_ENTRY_BYTES = 16 << 20  # the files of one name at one step; a message to the observatory has 60 MiB at most
MAX_ENTRY_FILES = 256
MAX_ROWS = 10_000  # of a table

# What a browser may be told of a file. Everything else is bytes to download.
FILE_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "svg": "image/svg+xml",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
}
_UNKNOWN = "application/octet-stream"
_NAME = re.compile(r"([0-9a-f]{64})\.([a-z0-9]{1,8})\Z")


def file_name(content: bytes, suffix: str) -> str:
    """The name of these bytes: what they are, and so the same for the same ones."""
    kind = suffix.lower().lstrip(".")
    return f"{hashlib.sha256(content).hexdigest()}.{kind if re.fullmatch('[a-z0-9]{1,8}', kind) else 'bin'}"


def check_file_name(name: str) -> str:
    """Returns a name that `file_name` could have given."""
    if _NAME.match(name) is None:
        raise InvalidArgument(f"{name[:80]!r} is no file of a run", hint="A SHA-256 in hex, a dot and a suffix.")
    return name


def content_type(name: str) -> str:
    return FILE_TYPES.get(name.rpartition(".")[2], _UNKNOWN)
