"""What is written beside the bytes: the rank's manifest (its vote) and COMMIT.json (the decision), both with a hash
of themselves."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import xxhash

from strata.errors import CorruptCheckpoint

__all__ = ["CHUNK_BYTES", "FORMAT", "CommitManifest", "RankEntry", "RankManifest", "TensorRecord", "digest_of"]

FORMAT = "strata-ckpt/1"
CHUNK_BYTES = 8 << 20


def digest_of(data: bytes | memoryview) -> str:
    return str(xxhash.xxh3_128_hexdigest(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRecord:
    """One array in a rank's object: `offset` from the object's first byte, the global fields when it is a part of a
    larger one."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    global_shape: tuple[int, ...] | None = None
    global_offset: tuple[int, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        given: dict[str, Any] = {name: raw[name] for name in cls.__slots__ if name in raw}
        given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankManifest:
    """All that one rank wrote in one attempt: chunk hashes, arrays, and the rest of its state as a tree."""

    step: int
    attempt: str
    rank: int
    key: str
    size: int
    chunks: tuple[str, ...]
    tensors: Mapping[str, TensorRecord]
    tree: Any
    data_state: Any
    metadata: Mapping[str, Any]
    chunk_bytes: int = CHUNK_BYTES

    @property
    def digest(self) -> str:
        """One hash for the whole object: over the chunks' hashes, so that no byte is hashed twice."""
        return digest_of("".join(self.chunks).encode())

    def to_bytes(self) -> bytes:
        tensors = {name: record.to_json() for name, record in self.tensors.items()}
        return _sealed({"format": FORMAT, "xxh3_128": self.digest, **_fields_of(self), "tensors": tensors})

    @classmethod
    def from_bytes(cls, data: bytes, what: str) -> Self:
        raw = _opened(data, what)
        raw["chunks"] = tuple(raw["chunks"])
        raw["tensors"] = {name: TensorRecord.from_json(record) for name, record in raw["tensors"].items()}
        return cls(**{name: raw[name] for name in cls.__slots__})

    def tensors_at(self, start: int, end: int) -> list[str]:
        """Names of the arrays with a byte in [start, end): how a bad chunk is reported by name."""
        return [n for n, r in self.tensors.items() if r.nbytes and r.offset < end and r.offset + r.nbytes > start]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEntry:
    """A rank's line in COMMIT.json: where its object and manifest are, how large, and the manifest's hash."""

    rank: int
    key: str
    size: int
    manifest_key: str
    manifest_size: int
    manifest_digest: str
    data_state: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitManifest:
    """COMMIT.json: the one object that makes a checkpoint exist. It points at manifests by hash, so it stays small."""

    step: int
    epoch: int
    attempt: str
    generation: int
    created_at: float
    duration_s: float
    writer: str
    ranks: tuple[RankEntry, ...]
    worker_id: str | None
    task_id: str | None
    metadata: Mapping[str, Any]

    @property
    def world_size(self) -> int:
        return len(self.ranks)

    @property
    def total_bytes(self) -> int:
        return sum(entry.size for entry in self.ranks)

    def entry(self, rank: int) -> RankEntry:
        return next(entry for entry in self.ranks if entry.rank == rank)

    def to_bytes(self) -> bytes:
        counted = {"world_size": self.world_size, "total_bytes": self.total_bytes}
        ranks = [_fields_of(entry) for entry in self.ranks]
        return _sealed({"format": FORMAT, **counted, **_fields_of(self), "ranks": ranks})

    @classmethod
    def from_bytes(cls, data: bytes, what: str) -> Self:
        raw = _opened(data, what)
        raw["ranks"] = tuple(RankEntry(**entry) for entry in raw["ranks"])
        return cls(**{name: raw[name] for name in cls.__slots__})


def _fields_of(record: RankManifest | CommitManifest | RankEntry) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__slots__}


def _sealed(fields: Mapping[str, Any]) -> bytes:
    """Canonical JSON whose last field is the hash of everything before it."""
    body = json.dumps(fields, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    return body[:-1] + b',"manifest_xxh3_128":"' + digest_of(body).encode() + b'"}'


def _opened(data: bytes, what: str) -> dict[str, Any]:
    """The fields again, or CorruptCheckpoint: a flipped bit anywhere, a cut, or a foreign format."""
    body, mark, tail = data.rpartition(b',"manifest_xxh3_128":"')
    if not mark or tail != digest_of(body + b"}").encode() + b'"}':
        raise CorruptCheckpoint(f"{what} does not match its own hash")
    fields: dict[str, Any] = json.loads(body + b"}")
    if fields.get("format") != FORMAT:
        raise CorruptCheckpoint(
            f"{what} has the format {fields.get('format')!r}, this version reads {FORMAT!r}",
            hint="Read it with the version of Strata that wrote it.",
        )
    return fields
