"""What a run logs beside numbers: each kind as a text and its files, whatever odd thing was given."""

import io
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strata
from strata.errors import InvalidArgument
from strata.protocol.generated import telemetry_pb2 as tm
from strata.types.media import MAX_ENTRY_BYTES, MAX_ROWS, file_name
from strata.worker.media.base import Entry, Files, Media
from strata.worker.media.queue import MAX_WAITING_BYTES
from strata.worker.media.unfit import Unfit
from strata.worker.run import Run
from tests.support.offline import kept_batches, kept_media, kept_points


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    started = strata.init(run_id="media")
    yield started
    started.finish()


def items(text: tm.TextPoint) -> Any:
    return json.loads(text.text)["items"]


def by_name(run: Run) -> dict[str, tm.TextPoint]:
    run.finish()
    return {text.metric: text for text in kept_media(run)}


def test_every_kind_is_a_text_and_its_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").write_bytes(b"video")
    run.log(
        {
            "loss": 1.0,
            "eval": {"picture": strata.Image(np.zeros((4, 5, 3)), caption="black")},
            "several": [strata.Image(np.ones((2, 2))), strata.Image(np.full((2, 2, 4), 255, np.uint8))],
            "video": strata.File(str(tmp_path / "clip.mp4"), fps=4),
            "weights": strata.Histogram([1.0, 2.0, np.nan], num_bins=2),
            "page": strata.Html("<b>hi</b>"),
            "words": strata.Text("# Title"),
            "table": strata.Table(
                ["n", "at", "picture"], [[1, datetime(2026, 1, 1, tzinfo=UTC), strata.Image(np.eye(2))]]
            ),
        },
        step=7,
    )
    kept = by_name(run)
    assert kept_points(run) == [("loss", 7, 1.0)]
    assert {name: text.kind for name, text in kept.items()} == {
        "eval/picture": "image",
        "several": "image",
        "video": "file",
        "weights": "histogram",
        "page": "html",
        "words": "markdown",
        "table": "table",
    }
    assert {text.step for text in kept.values()} == {7}
    [picture] = items(kept["eval/picture"])
    content = kept["eval/picture"].files[0].content
    assert (picture["width"], picture["height"], picture["caption"]) == (5, 4, "black")
    assert picture["file"] == file_name(content, "png") == kept["eval/picture"].files[0].name
    assert len(items(kept["several"])) == 2
    assert (items(kept["video"])[0]["name"], kept["video"].files[0].content) == ("clip.mp4", b"video")
    assert json.loads(kept["weights"].text) == {"counts": [1, 1], "bins": [1.0, 1.5, 2.0], "bad": 1}
    assert kept["page"].files[0].content == b"<b>hi</b>"
    assert (kept["words"].text, list(kept["words"].files)) == ("# Title", [])
    table = json.loads(kept["table"].files[-1].content)
    assert table["data"][0][:2] == [1, "2026-01-01 00:00:00+00:00"]
    assert table["data"][0][2]["file"] == kept["table"].files[0].name
    assert run.dropped == 0


def test_pictures_are_read_by_others() -> None:
    pillow = pytest.importorskip("PIL.Image")
    shade = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert np.array_equal(np.asarray(pillow.open(io.BytesIO(strata.Image(shade).content()))), shade)
    colour = np.random.default_rng(0).integers(0, 255, (3, 4, 3), np.uint8)
    assert np.array_equal(np.asarray(pillow.open(io.BytesIO(strata.Image(colour).content()))), colour)
    again = strata.Image(pillow.fromarray(colour).convert("P")).content()
    assert pillow.open(io.BytesIO(again)).size == (4, 3)
    with pytest.raises(InvalidArgument, match="is no image"):
        strata.Image(np.zeros((2, 2, 2)))
    with pytest.raises(InvalidArgument, match="is no image"):
        strata.Image(np.full((2, 2), "x"))


def test_a_picture_is_copied_when_it_is_made() -> None:
    pixels = np.zeros((2, 2), np.uint8)
    image = strata.Image(pixels)
    before = image.content()
    pixels[:] = 255
    assert image.content() == before


def test_odd_pictures_are_counted_and_do_not_end_a_training(run: Run) -> None:
    run.log({"empty": strata.Image(np.zeros((0, 0))), "bad\ud800": strata.Image(np.eye(2)), "loss": 1.0})
    run.log({"caption": strata.Image(np.full((2, 2), np.nan), caption="a\ud800b"), "same": strata.Image(np.eye(3))})
    run.log({"same": 2.0})
    run.log({"same": strata.Image(np.eye(3))}, step=1)  # a step that goes back
    kept = by_name(run)
    assert set(kept) == {"caption", "same"}
    assert items(kept["caption"])[0]["caption"] == "⚠ a\\ud800b"
    assert sorted(text.step for text in kept_media(run) if text.metric == "same") == [1, 2]
    assert kept_points(run) == [("loss", 1, 1.0), ("same", 3, 2.0)]
    assert run.dropped == 2


@pytest.mark.parametrize(
    "values",
    [[], [np.nan], [np.inf, -np.inf, 1], [1e308, -1e308], [1.0, 1.0 + 2e-16], [5e-324, 0.0], None, [2**70], [True]],
)
def test_a_histogram_of_anything(values: Any) -> None:
    told = json.loads(strata.Histogram(values).entry().text)
    array = np.asarray(values if values is not None else [], np.float64)
    assert len(told["bins"]) == len(told["counts"]) + 1
    assert sum(told["counts"]) == np.isfinite(array).sum()
    assert told.get("bad", 0) == (~np.isfinite(array)).sum()


def test_what_is_no_histogram_says_so() -> None:
    with pytest.raises(InvalidArgument, match="of numbers"):
        strata.Histogram(["a"])
    with pytest.raises(InvalidArgument, match="are no histogram"):
        strata.Histogram(np_histogram=([1, 2], [1, 2]))


@pytest.mark.slow
def test_a_large_table_keeps_its_first_rows_and_says_so(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    table = strata.Table(["x", "y"])
    for row in range(1_000_000):
        table.add_data(row, row)
    assert len(table.data) == MAX_ROWS
    wide = strata.Table(["x"], [["y" * 100_000]] * 200)
    run.log({"long": table, "wide": wide})
    table.add_data(-1, -1)  # after it was logged: not in it
    kept = by_name(run)
    assert (items(kept["long"])[0]["rows"], items(kept["long"])[0]["kept"]) == (1_000_000, MAX_ROWS)
    assert items(kept["wide"])[0]["kept"] < 200
    assert "it has 1000000 rows, the first 10000 are kept" in caplog.text
    assert run.dropped == 0


@pytest.mark.slow
def test_what_is_too_large_is_counted_and_said(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (MAX_ENTRY_BYTES // 1000, 1100), np.uint8)
    run.log({"huge": strata.Image(noise)})
    run.log({"never": strata.Image(np.broadcast_to(np.uint8(0), (MAX_WAITING_BYTES + 1, 1)))})
    assert by_name(run) == {}
    assert run.dropped == 2
    assert "make it smaller" in caplog.text
    assert "log fewer or smaller ones" in caplog.text


class Slow(Media):
    """A medium whose file takes as long as a test wants."""

    kind = "slow"
    num_bytes = 1

    def __init__(self, gate: threading.Event) -> None:
        self._gate = gate

    def entry(self) -> Entry:
        self._gate.wait()
        return Entry(kind=self.kind, text="done")


@pytest.mark.slow
def test_a_full_queue_drops_and_counts_and_never_waits(run: Run) -> None:
    gate = threading.Event()
    for _ in range(5_000):
        run.log({"slow": Slow(gate), "loss": 1.0})
    gate.set()
    run.finish()
    assert run.dropped > 0
    assert len(kept_media(run)) + run.dropped == 5_000
    assert len(kept_points(run)) == 5_000


def test_one_that_fails_does_not_take_the_others_with_it(run: Run) -> None:
    class Broken(Media):
        def entry(self) -> Entry:
            raise RuntimeError("somebody's own")

    run.log({"broken": Broken(), "list": [strata.Histogram([1]), strata.Histogram([2])]})
    assert set(by_name(run)) == {"list/0", "list/1"}
    assert run.dropped == 1


def test_what_was_logged_before_a_checkpoint_is_safe_from_a_kill(run: Run) -> None:
    run.log({"picture": strata.Image(np.eye(4))})
    assert run.reporter.secure()
    assert [text.metric for text in kept_media(run)] == ["picture"]


def test_a_cell_that_cannot_be_kept_leaves_the_others() -> None:
    table = strata.Table(["p"], [[strata.Image(np.zeros((0, 2)))], [strata.Image(np.eye(2))], [strata.Histogram([1])]])
    entry = table.entry()
    rows = json.loads(list(entry.files.values())[-1])["data"]
    assert "no pixels" in rows[0][0]["missing"]
    assert rows[1][0]["file"] in entry.files
    assert "missing" in rows[2][0]
    with pytest.raises(Unfit, match="256 files"):
        _Many(np.eye(2)).entry()


class _Many(strata.Image):
    def item(self, files: Files, notes: list[str]) -> dict[str, Any]:
        for number in range(300):
            files.add(str(number).encode(), "txt")
        return {}


def test_kept_batches_hold_no_media(run: Run) -> None:
    """Points and media are sent apart, so that neither waits for the other."""
    run.log({"picture": strata.Image(np.eye(4)), "loss": 1.0})
    run.finish()
    assert not any(text.files for batch in kept_batches(run) for text in batch.texts)
