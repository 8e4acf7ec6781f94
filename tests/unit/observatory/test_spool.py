"""The spool: what was appended is there after a crash, whole, in order, once."""

from pathlib import Path

import pytest

from strata.errors import Busy, DataDirInUse
from strata.observatory.spool import Progress, Spool


def opened(folder: Path, **options: int) -> Spool:
    spool = Spool(folder, **options)
    spool.open()
    return spool


def payloads(spool: Spool, start: int = 0) -> list[bytes]:
    return [record.payload for record in spool.read(start, limit=spool.end, max_bytes=1 << 62)]


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
    file = next(tmp_path.glob("*.spool"))
    file.write_bytes(file.read_bytes()[:-torn])
    again = opened(tmp_path)
    assert payloads(again) == [b"whole"]
    assert not again.has(again.digest("b"))
    again.append([(again.digest("c"), b"after")])
    assert payloads(again) == [b"whole", b"after"]
    again.close()


def test_a_damaged_record_ends_the_readable_part(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.append([(spool.digest("a"), b"good"), (spool.digest("b"), b"evil")])
    spool.close()
    file = next(tmp_path.glob("*.spool"))
    file.write_bytes(file.read_bytes().replace(b"evil", b"bad!"))
    again = opened(tmp_path)
    assert payloads(again) == [b"good"]
    again.close()


def test_progress_survives_and_consumed_segments_go_but_their_ids_stay(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    big = bytes(17 << 20)
    spool.append([(spool.digest("first"), big)])
    spool.append([(spool.digest("second"), big)])
    spool.append([(spool.digest("third"), b"x")])
    assert len(list(tmp_path.glob("*.spool"))) == 2
    end = spool.read(0, limit=spool.end, max_bytes=1 << 62)[1].end
    spool.save(Progress(consumed=end, pending=end))
    spool.trim()
    assert len(list(tmp_path.glob("*.spool"))) == 1
    spool.close()
    again = opened(tmp_path)
    assert again.progress == Progress(consumed=end, pending=end)
    assert again.has(again.digest("first"))
    assert again.has(again.digest("second"))
    assert payloads(again, end) == [b"x"]
    again.close()


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
