"""Imports: TensorBoard's bytes and both shapes of CSV become points; what is broken is named."""

import math
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.errors import DataError, StrataError
from strata.observatory.batch.columns import to_columns
from strata.observatory.batch.door import check_extras
from strata.observatory.transfer.batches import Had, ImportedPoint, check_had, to_batches
from strata.observatory.transfer.find import find_runs
from strata.observatory.transfer.runs import ImportedRun, run_batches
from strata.observatory.transfer.table import read_csv
from strata.observatory.transfer.tensorboard import find_event_files, read_event_file
from strata.types.metrics import NO_DEVICE, SeriesKey


def field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2, len(body)]) + body


def event(
    step: int, tag: str, *, simple: float | None = None, tensor: float | None = None, other: bytes = b""
) -> bytes:
    value = field(1, tag.encode()) + other
    if simple is not None:
        value += bytes([2 << 3 | 5]) + struct.pack("<f", simple)
    if tensor is not None:
        value += field(8, bytes([1 << 3, 2]) + field(4, struct.pack("<d", tensor)))
    body = bytes([1 << 3 | 1]) + struct.pack("<d", 1_794_000_000.5) + bytes([2 << 3, step]) + field(5, field(1, value))
    return struct.pack("<Q", len(body)) + bytes(4) + body + bytes(4)


def test_event_files_of_both_generations(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "train"
    folder.mkdir(parents=True)
    file = folder / "events.out.tfevents.1.host"
    whole = event(1, "loss", simple=0.5) + event(2, "acc", tensor=0.25) + event(3, "loss", simple=math.nan)
    file.write_bytes(whole + event(4, "loss", simple=1.0)[:-7])
    assert find_event_files(tmp_path / "logs") == {"train": [file]}
    points = list(read_event_file(file, Counter()))
    assert points[:2] == [
        ImportedPoint("loss", 1, 1_794_000_000_500, 0.5),
        ImportedPoint("acc", 2, 1_794_000_000_500, 0.25),
    ]
    assert math.isnan(points[2].value)
    assert len(points) == 3


def test_folders_are_called_as_people_call_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lr=0.1,größe 32"
    folder.mkdir()
    (folder / "events.out.tfevents.1.host").write_bytes(event(1, "loss", simple=0.5))
    (folder / "last try.csv").write_text("step,loss\n1,2\n")
    monkeypatch.chdir(folder)
    for given in (folder, Path(), Path("events.out.tfevents.1.host"), tmp_path):
        (run,) = find_runs(given, 0, lambda file, error: None)
        assert (run.run_id, run.name) == ("lr-0.1-gr--e-32", "lr=0.1,größe 32"), given
    (run,) = find_runs(folder / "last try.csv", 0, lambda file, error: None)
    assert (run.run_id, run.name) == ("last-try", "last try")


def test_tensors_that_list_their_number(tmp_path: Path) -> None:
    """int_val and int64_val, packed and not, also below 0; a tensor of two numbers is no scalar."""
    minus_two = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    file = tmp_path / "x.tfevents"
    file.write_bytes(
        event(1, "packed", other=field(8, bytes([1 << 3, 9]) + field(10, minus_two)))
        + event(2, "alone", other=field(8, bytes([1 << 3, 3, 7 << 3, 7])))
        + event(3, "two", other=field(8, bytes([1 << 3, 3]) + field(7, bytes([1, 2]))))
        + event(4, "image", other=field(4, b"png"))
    )
    unread: Counter[str] = Counter()
    points = [(point.metric, point.value) for point in read_event_file(file, unread)]
    assert (points, unread) == ([("packed", -2.0), ("alone", 7.0)], {"values that are no numbers": 2})


def test_what_is_no_event_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.tfevents"
    file.write_bytes(b"certainly not a record")
    with pytest.raises(DataError, match=r"x\.tfevents"):
        list(read_event_file(file, Counter()))
    assert find_event_files(tmp_path / "nowhere") == {}


def test_a_record_that_is_no_event_takes_no_other_with_it(tmp_path: Path) -> None:
    file = tmp_path / "x.tfevents"
    odd = event(2, "loss", simple=0.25)
    odd = odd[:12] + b"\xff" * (len(odd) - 16) + odd[-4:]
    endless = bytearray(event(4, "loss", simple=1.0))
    endless[13:21] = struct.pack("<d", math.inf)  # its time
    file.write_bytes(event(1, "loss", simple=0.5) + odd + event(3, "loss", simple=0.125) + bytes(endless))
    unread: Counter[str] = Counter()
    points = [(point.step, point.time_ms > 0) for point in read_event_file(file, unread)]
    assert (points, unread) == ([(1, True), (3, True), (4, False)], {"records that are no event": 1})
    (tmp_path / "a-folder.tfevents").mkdir()
    assert find_event_files(tmp_path) == {tmp_path.name: [file]}


def test_long_and_wide_csv(tmp_path: Path) -> None:
    long = tmp_path / "long.csv"
    long.write_text("metric,step,value,rank\nloss,1,0.5,2\nloss,2,nan,2\nlr,1,,0\n")
    points = list(read_csv(long, Counter(), 1_000))
    assert points[0] == ImportedPoint("loss", 1, 1_000, 0.5, 2)
    assert math.isnan(points[1].value)
    assert len(points) == 2
    wide = tmp_path / "wide.csv"
    wide.write_text("step,time,loss,val/acc\n0,1794000000,1.5,\n10,1794000001,0.5,0.75\n")
    assert [(p.metric, p.step, p.time_ms, p.value) for p in read_csv(wide, Counter(), 0)] == [
        ("loss", 0, 1_794_000_000_000, 1.5),
        ("loss", 10, 1_794_000_001_000, 0.5),
        ("val/acc", 10, 1_794_000_001_000, 0.75),
    ]


def test_a_csv_that_strata_exported_comes_back_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "exported.csv"
    file.write_text(
        '"run_id","metric","host","rank","device","unit","step","event_time_ms","value","attempt"\n'
        '"r","gpu/util","a",1,2,"%",7,1700000000123,0.5,0\n'
        f'"r","loss","a",0,{NO_DEVICE},"",7,1700000000456,nan,0\n'
    )
    points = list(read_csv(file, Counter(), 0))
    assert points[0] == ImportedPoint("gpu/util", 7, 1_700_000_000_123, 0.5, 1, "a", 2, "%")
    assert points[1].time_ms == 1_700_000_000_456
    (batch,) = to_batches(points, "again", "exported.csv", Counter(), Counter())
    assert [(one.device, one.unit) for one in batch.series] == [(2, "%"), (NO_DEVICE, "")]
    odd = ImportedPoint("loss", 1, 1, 1.0, unit="x" * 65)
    unread: Counter[str] = Counter()
    assert not list(to_batches([odd], "r", "odd.csv", Counter(), unread)), "the observatory would refuse its batch"
    assert unread["points of these"] == 1


def test_times_of_a_csv_are_read_in_every_form_that_rest_takes(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    file.write_text(
        "step,timestamp,loss\n1,1700000000.5,1\n2,2023-11-14T22:13:20.5Z,1\n3,2023-11-14 22:13:20.500,1\n"
        "4,yesterday,1\n5,,1\n"
    )
    unread: Counter[str] = Counter()
    times = [point.time_ms for point in read_csv(file, unread, 10)]
    assert times == [1_700_000_000_500] * 3 + [13, 14]
    assert unread == {"cells that hold no number, step or time, the first one 'yesterday' in row 5": 1}


def test_a_cell_that_is_no_number_takes_only_its_own_point(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("step,loss,acc\n1,0.5,1\n2,much,2\ninf,1,1\nnan,1,1\nlate,1,1\n1.5,1,1\n3.0,0.25\n4,0.125,4,5,6\n")
    unread: Counter[str] = Counter()
    points = [(point.metric, point.step, point.value) for point in read_csv(file, unread, 0)]
    assert points == [
        ("loss", 1, 0.5),
        ("acc", 1, 1),
        ("acc", 2, 2),
        ("loss", 3, 0.25),
        ("loss", 4, 0.125),
        ("acc", 4, 4),
    ]
    assert unread == {"cells that hold no number, step or time, the first one 'much' in row 3": 5}
    file.write_bytes(
        b"metric,step,value,rank,time\nloss,1,0.5,x,1\nloss,2,0.5,0,soon\nl\xf6ss,3,0.5,,inf\n,4,0.5,,\n"
        b'loss,5,"' + b"9" * 200_000 + b'",,\nloss,6,0.5,1e300,7\nloss,7\n'
    )
    unread = Counter()
    points = [(point.metric, point.step, point.value) for point in read_csv(file, unread, 0)]
    assert points[:3] == [("loss", 2, 0.5), ("l\ufffdss", 3, 0.5), ("", 4, 0.5)]
    assert points[3][1] == 6, "its rank is refused later, with a name"
    assert unread["rows that are no CSV: field larger than field limit (131072)"] == 1


def test_a_csv_without_steps_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    for text in ("a,b\n1,2\n", "", "\n\n"):
        file.write_text(text)
        with pytest.raises(DataError, match="no column metric"):
            list(read_csv(file, Counter(), 0))


def test_batches_have_stable_ids_and_are_valid() -> None:
    points = [ImportedPoint("loss", step, 1_794_000_000_000 + step, 1.0) for step in range(45_000)]
    batches = list(to_batches(points, "r1", "file", Counter(), Counter()))
    assert sum(to_columns(batch).num_points for batch in batches) == 45_000
    assert len({batch.batch_id for batch in batches}) == 3
    assert [b.batch_id for b in to_batches(points, "r1", "file", Counter(), Counter())] == [b.batch_id for b in batches]


def kept(points: list[ImportedPoint], had: Counter[SeriesKey], unread: Counter[str]) -> list[tuple[int, float]]:
    batches = list(to_batches(points, "r1", "file", had, unread))
    return [pair for batch in batches for pair in zip(batch.points.step, batch.points.value, strict=True)]


def test_a_point_that_cannot_be_kept_is_counted_and_takes_no_other_with_it() -> None:
    odd = [
        ImportedPoint("loss", -1, 5, 1.0),
        ImportedPoint("loss", 2**70, 5, 1.0),
        ImportedPoint("loss", 1, 10**18, 1.0),
        ImportedPoint("", 1, 5, 1.0),
        ImportedPoint("loss", 1, 5, 1.0, host="\ud800"),
        ImportedPoint("loss", 1, 5, 1.0, rank=2**70),
    ]
    unread: Counter[str] = Counter()
    assert kept([*odd, ImportedPoint("loss", 7, 0, 0.5)], Counter(), unread) == [(7, 0.5)]
    assert sum(unread.values()) - unread["points of these"] == len(odd)
    assert unread["points of these"] == 3


def test_a_name_that_is_none_of_ours_is_spelled_as_in_a_url_and_said() -> None:
    unread: Counter[str] = Counter()
    names = ["acc (top-1)", "größe", "\ud800", "a,b=c", "-x", "fine/50% @2:1+1"]
    batches = list(to_batches([ImportedPoint(name, 1, 5, 1.0) for name in names], "r1", "file", Counter(), unread))
    kept_names = [series.metric for series in batches[0].series]
    assert kept_names == ["acc %28top-1%29", "gr%C3%B6%C3%9Fe", "_%5Cud800", "a%2Cb%3Dc", "_-x", "fine/50% @2:1+1"]
    assert unread["the name 'acc (top-1)', which is 'acc %28top-1%29' here"] == 1


def test_of_a_file_that_has_grown_only_what_is_new_comes() -> None:
    points = [ImportedPoint("loss", step, 5, step / 10) for step in range(5)]
    (first,) = to_batches(points[:3], "r1", "file/3", Counter(), Counter())
    had = Counter({SeriesKey("r1", "loss", "", 0, NO_DEVICE): 3})
    (second,) = to_batches(points, "r1", "file/5", had, Counter())
    assert list(second.points.step) == [3, 4]
    assert first.batch_id != second.batch_id
    assert kept(points, Counter({SeriesKey("r1", "loss", "", 0, NO_DEVICE): 5}), Counter()) == []


def test_what_the_store_had_must_be_the_first_points_of_the_file() -> None:
    points = [ImportedPoint("loss", step, 5, step / 10) for step in range(5)]
    key = SeriesKey("r1", "loss", "", 0, NO_DEVICE)
    other = {SeriesKey("r1", "acc", "", 0, NO_DEVICE): Had(9, 9)}  # which this file does not know
    for had in ({}, {key: Had(3, 0 + 1 + 2)}, {key: Had(5, 10), **other}):
        check_had(points, "r1", had)
    for had in ({key: Had(3, 0 + 2 + 3)}, {key: Had(6, 10)}):
        with pytest.raises(DataError, match="which are not the first ones here"):
            check_had(points, "r1", had)


def test_a_run_is_over_when_its_import_ends(tmp_path: Path) -> None:
    """Also one that was half read; one whose file says how it ended has that said, and an empty file makes no run."""
    (tmp_path / "plain.csv").write_text("step,loss\n1,0.5\n")
    (tmp_path / "empty.csv").write_text("step,loss\n")
    (plain,), (empty,) = (list(find_runs(tmp_path / name, 0, raised)) for name in ("plain.csv", "empty.csv"))
    *_, points, end = run_batches(plain, {}, end_at_ms=7)
    assert len(points.points.step) == 1
    (said,) = end.runs
    assert (said.run_id, said.status, said.reason, said.updated_at_ms) == ("plain", "finished", "imported", 7)
    check_extras(end)
    had = {SeriesKey("plain", "loss", "", 0, NO_DEVICE): Had(1, 1)}
    assert [batch.runs[0].status for batch in run_batches(plain, had, end_at_ms=8)] == ["finished"]
    assert not any(batch.runs for batch in run_batches(plain, {}))  # a script logs to it
    assert list(run_batches(empty, {}, end_at_ms=7)) == []
    told = ImportedRun(run_id="told", name="told", status="failed", reason="exit code 3", parts=plain.parts)
    ends = [run.status for batch in run_batches(told, {}, end_at_ms=7) for run in batch.runs]
    assert ends == ["failed"]

    def half() -> Iterator[ImportedPoint]:
        yield ImportedPoint("loss", 1, 1, 0.5)
        raise DataError("the rest is damaged")

    batches = run_batches(ImportedRun(run_id="half", parts={"f": half}), {}, end_at_ms=7)
    assert [[run.status for run in next(batches).runs] for _ in range(2)] == [[], ["finished"]]
    with pytest.raises(DataError, match="damaged"):
        next(batches)


def raised(_: object, error: StrataError) -> None:
    raise error
