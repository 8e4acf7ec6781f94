"""AsyncCheckpointWriter: bounded, hashed, all or nothing, and honest about failures."""

import threading
from collections.abc import Iterable

import pytest
import xxhash

from strata.checkpoint.manifest import CHUNK_BYTES
from strata.checkpoint.writer import AsyncCheckpointWriter
from strata.errors import CheckpointError, InvalidArgument, StorageFull, StorageNotFound
from strata.storage.memory import MemoryStore


class _Gated(MemoryStore):
    """A store whose uploads stand still until the gate opens, or fail after the first block."""

    def __init__(self, *, fail: bool = False) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.fail = fail

    def put_stream(self, key: str, chunks: Iterable[memoryview], *, size: int | None = None) -> None:
        def passed() -> Iterable[memoryview]:
            for chunk in chunks:
                self.gate.wait(60)
                if self.fail:
                    raise StorageFull("no space left")
                yield chunk

        super().put_stream(key, passed(), size=size)


def test_pieces_of_any_size_become_one_hashed_object() -> None:
    store = MemoryStore()
    expected = b""
    with AsyncCheckpointWriter(store, "big") as writer:
        for size in (1, 100_000, CHUNK_BYTES, 3, 2 * CHUNK_BYTES + 5, 0, 17):
            piece = bytes([size % 251]) * size
            assert writer.write(piece) == size
            expected += piece
        with pytest.raises(StorageNotFound):
            store.get("big")
    assert store.get("big") == expected
    written = writer.finish()
    hashes = [xxhash.xxh3_128_hexdigest(expected[at : at + CHUNK_BYTES]) for at in range(0, len(expected), CHUNK_BYTES)]
    assert (written.size, list(written.chunks)) == (len(expected), hashes)


def test_the_caller_may_change_its_buffer_at_once() -> None:
    store = MemoryStore()
    buffer = bytearray(b"a" * 1000)
    writer = AsyncCheckpointWriter(store, "k")
    writer.write(buffer)
    buffer[:] = b"b" * 1000
    writer.finish()
    assert store.get("k") == b"a" * 1000


def test_a_full_buffer_makes_write_wait() -> None:
    store = _Gated()
    writer = AsyncCheckpointWriter(store, "k", max_buffer_bytes=2 * CHUNK_BYTES)
    taken = threading.Event()

    def produce() -> None:
        for _ in range(6):
            writer.write(bytes(CHUNK_BYTES))
        taken.set()

    thread = threading.Thread(target=produce)
    thread.start()
    assert not taken.wait(0.1)
    store.gate.set()
    assert taken.wait(60)
    thread.join()
    assert writer.finish().size == 6 * CHUNK_BYTES


def test_a_failed_upload_is_raised_by_the_next_call_and_by_finish() -> None:
    store = _Gated(fail=True)
    store.gate.set()
    writer = AsyncCheckpointWriter(store, "k", max_buffer_bytes=CHUNK_BYTES)

    def write_on() -> None:
        for _ in range(1000):
            writer.write(bytes(CHUNK_BYTES))

    with pytest.raises(StorageFull):
        write_on()
    with pytest.raises(StorageFull):
        writer.finish()


def test_an_exception_in_the_block_leaves_nothing() -> None:
    store = MemoryStore()
    writer = AsyncCheckpointWriter(store, "k")

    def train() -> None:
        with writer:
            writer.write(bytes(2 * CHUNK_BYTES))
            raise KeyError("trainer")

    with pytest.raises(KeyError):
        train()
    assert store.list().objects == ()
    with pytest.raises(CheckpointError, match="given up"):
        writer.write(b"x")


def test_misuse_is_told() -> None:
    with pytest.raises(InvalidArgument, match="max_buffer_bytes is 1"):
        AsyncCheckpointWriter(MemoryStore(), "k", max_buffer_bytes=1)
    writer = AsyncCheckpointWriter(MemoryStore(), "k")
    writer.finish()
    with pytest.raises(CheckpointError, match="finished"):
        writer.write(b"late")
