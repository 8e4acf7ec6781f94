"""The spool: what was appended is there after a crash, whole, in order, once."""

import resource
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from strata.errors import Busy, DataDirInUse, StorageFull
from strata.observatory.spool.segment import pack_record
from strata.observatory.spool.spool import Damage, Progress, Spool


def opened(folder: Path, max_bytes: int = 4 << 30, segment_bytes: int = 32 << 20) -> Spool:
    spool = Spool(folder, max_bytes, segment_bytes)
    spool.open()
    return spool


def payloads(spool: Spool, start: int = 0) -> list[bytes]:
    return [record.payload for record in spool.read(start, limit=spool.end, max_bytes=1 << 62).records]


def test_records_come_back_in_order_after_a_reopen(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    ends = spool.append([(spool.digest("a"), b"one"), (spool.digest("b"), b"two")])
    spool.append([(spool.digest(""), b"three")])
    spool.close()
    again = opened(tmp_path)
    assert payloads(again) == [b"one", b"two", b"three"]
    assert payloads(again, ends[0]) == [b"two", b"three"]
    assert again.has(again.digest("a"))
    assert again.has(again.digest("b"))
    assert not again.has(again.digest("c"))
    assert not again.has(again.digest(""))
    assert again.spool_id == spool.spool_id
    again.close()


@pytest.mark.parametrize("torn", [1, 10, 25])
def test_a_torn_tail_is_cut_and_the_next_append_is_readable(tmp_path: Path, torn: int) -> None:
    spool = opened(tmp_path)
    spool.append([(spool.digest("a"), b"whole")])
    spool.append([(spool.digest("b"), b"torn in the middle")])
    spool.close()
    file = next(tmp_path.glob("*.segment"))
    file.write_bytes(file.read_bytes()[:-torn])
    again = opened(tmp_path)
    assert payloads(again) == [b"whole"]
    assert not again.has(again.digest("b"))
    again.append([(again.digest("c"), b"after")])
    assert payloads(again) == [b"whole", b"after"]
    again.close()


def test_progress_survives_and_consumed_segments_go_but_their_ids_stay(tmp_path: Path) -> None:
    spool = opened(tmp_path, segment_bytes=200)
    big = bytes(100)
    spool.append([(spool.digest("first"), big)])
    spool.append([(spool.digest("second"), big)])
    spool.append([(spool.digest("third"), b"x")])
    assert len(list(tmp_path.glob("*.segment"))) == 2
    end = spool.read(0, limit=spool.end, max_bytes=1 << 62).records[1].end
    spool.save(Progress(consumed=end, pending=end))
    spool.trim()
    assert len(list(tmp_path.glob("*.segment"))) == 1
    spool.close()
    again = opened(tmp_path)
    assert again.progress == Progress(consumed=end, pending=end)
    assert again.has(again.digest("first"))
    assert again.has(again.digest("second"))
    assert payloads(again, end) == [b"x"]
    again.close()


def test_a_backlog_of_many_segments_is_read_from_any_record_on(tmp_path: Path) -> None:
    spool = opened(tmp_path, segment_bytes=100)
    given = [b"%03d" % number * 10 for number in range(40)]
    ends = [spool.append([(spool.digest(""), payload)])[0] for payload in given]
    assert len(list(tmp_path.glob("*.segment"))) > 10
    for number, start in enumerate([0, *ends]):
        assert payloads(spool, start) == given[number:]
    spool.close()


def test_what_a_full_disk_refuses_is_not_half_there_and_the_next_append_is(tmp_path: Path) -> None:
    """RLIMIT_FSIZE stands for a disk with room for one more kilobyte: a write comes back short, then fails."""
    spool = opened(tmp_path)
    spool.append([(spool.digest("a"), b"before")])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        with pytest.raises(StorageFull, match="metrics cannot be written"):
            spool.append([(spool.digest("b"), bytes(5000))])
        spool.append([(spool.digest("c"), b"after")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert payloads(spool) == [b"before", b"after"]
    assert not spool.has(spool.digest("b"))
    spool.close()
    again = opened(tmp_path)
    assert payloads(again) == [b"before", b"after"]
    assert again.damage == Damage()
    again.close()


class Kept(RuleBasedStateMachine):
    """Appends, reads, acknowledgements, kills and restarts in any order: nothing is lost, doubled or out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.spool = opened(self.folder, segment_bytes=150)
        self.given: list[tuple[int, bytes]] = []
        self.consumed = 0

    @rule(sizes=st.lists(st.integers(0, 120), min_size=1, max_size=4))
    def append(self, sizes: list[int]) -> None:
        names = [f"b{len(self.given)}-{place}" for place in range(len(sizes))]
        batch = [(self.spool.digest(name), bytes([size]) * size) for name, size in zip(names, sizes, strict=True)]
        ends = self.spool.append(batch)
        self.given += zip(ends, (payload for _, payload in batch), strict=True)

    @rule(max_bytes=st.integers(1, 400))
    def store(self, max_bytes: int) -> None:
        piece = self.spool.read(self.consumed, limit=self.spool.end, max_bytes=max_bytes)
        waiting = [(end, payload) for end, payload in self.given if end > self.consumed]
        assert [(one.end, one.payload) for one in piece.records] == waiting[: len(piece.records)]
        assert bool(piece.records) == bool(waiting)
        self.consumed = piece.end
        self.spool.save(Progress(consumed=piece.end, pending=piece.end))
        self.spool.trim()

    @rule(torn=st.integers(0, 40))
    def die_and_come_back(self, torn: int) -> None:
        """Up to `torn` bytes of a record that was being written are left at the end, as by kill -9."""
        self.spool.close()
        half = b"".join(pack_record(self.spool.end, bytes(16), bytes(100)))[:torn]
        with max(self.folder.glob("*.segment")).open("ab") as file:
            file.write(half)
        self.spool = opened(self.folder, segment_bytes=150)

    @invariant()
    def all_that_waits_is_there(self) -> None:
        assert payloads(self.spool, self.consumed) == [payload for end, payload in self.given if end > self.consumed]
        assert self.spool.damage == Damage()

    def teardown(self) -> None:
        self.spool.close()
        shutil.rmtree(self.folder)


TestKept = Kept.TestCase
TestKept.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_a_full_budget_is_refused_with_the_figures(tmp_path: Path) -> None:
    spool = opened(tmp_path, max_bytes=1 << 20)
    spool.check_room()
    spool.append([(spool.digest(""), bytes(2 << 20))])
    with pytest.raises(Busy, match="2 MiB wait for the metric store, 1 are allowed"):
        spool.check_room()
    spool.close()


def test_a_second_owner_is_told_who_the_first_is(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    with pytest.raises(DataDirInUse, match=r"pid \d+"):
        Spool(tmp_path).open()
    spool.close()
    opened(tmp_path).close()
