"""The live view: who makes room in the cache, and what counts as a run's step."""

from strata.clock import ManualClock
from strata.observatory.answers.runs import RunInfo
from strata.observatory.batch.columns import to_columns
from strata.observatory.ingest.points import from_json
from strata.observatory.live.cache import SeriesCache
from strata.observatory.live.runs import RunBook
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.snapshot import SnapshotBuilder
from strata.observatory.live.view import LiveView
from strata.observatory.stream.broadcaster import Broadcaster
from strata.types.metrics import ACTIVE_WINDOW_S, SeriesKey


class World:
    """A live view with room for three series."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.series, self.cache, self.runs = SeriesTable(), SeriesCache(max_series=3), RunBook(self.clock)
        snapshots = SnapshotBuilder(self.series, self.cache, self.runs)
        stream = Broadcaster(lambda _: b"", self.clock)
        self.live = LiveView(self.series, self.cache, self.runs, stream, snapshots)

    def log(self, run: str, metric: str, step: int = 0, ahead_s: float = 0.0) -> None:
        point = {"metric": metric, "step": step, "value": 1.0, "event_time": self.clock.wall() + ahead_s}
        message = from_json(run, {"points": [point]}, round(self.clock.wall() * 1000))
        self.live.take(to_columns(message), 0)
        self.live.tick()

    def held(self) -> set[tuple[str, str]]:
        numbers, _ = self.cache.held()
        return {(key.run_id, key.metric) for key in map(self.series.key, numbers.tolist())}


def test_old_series_make_room_of_ended_runs_first() -> None:
    world = World()
    world.log("ended", "a")
    world.clock.advance(ACTIVE_WINDOW_S + 1)
    world.log("live", "b")
    world.log("live", "c")
    world.log("live", "d")
    assert world.held() == {("live", "b"), ("live", "c"), ("live", "d")}
    world.log("live", "b", step=1)
    world.log("live", "e")
    assert world.held() == {("live", "b"), ("live", "d"), ("live", "e")}, "c was fed longest ago"
    gone = world.series.find(SeriesKey("ended", "a"))
    assert gone is not None
    assert world.cache.stats(gone).total_points == 1
    assert world.live.unshown_points == 0
    world.log("ended", "a", step=1)
    assert world.cache.stats(gone).total_points == 2
    assert world.live.unshown_points == 1


def test_a_point_from_far_ahead_does_not_keep_its_run_running() -> None:
    """A clock that is a little ahead does no harm."""
    for ahead_s, is_active in ((0.0, False), (10.0 * ACTIVE_WINDOW_S, False), (ACTIVE_WINDOW_S / 2, True)):
        world = World()
        world.log("r", "loss", ahead_s=ahead_s)
        assert world.runs.is_active("r")
        world.clock.advance(ACTIVE_WINDOW_S + 1)
        assert world.runs.is_active("r") is is_active


def test_samples_of_the_host_are_no_steps() -> None:
    world = World()
    world.log("r", "sys.cpu_percent", step=900)
    info = world.runs.info("r")
    assert info is not None
    assert info.latest_step is None
    world.log("r", "loss", step=7)
    world.log("r", "sys.cpu_percent", step=901)
    info = world.runs.info("r")
    assert info is not None
    assert info.latest_step == 7


def test_news_of_runs_are_what_changed_since_clients_were_told() -> None:
    world = World()
    world.log("a", "m")
    world.log("b", "m")
    assert {info.run_id for info in world.runs.news()[1]} == {"a", "b"}
    assert world.runs.news()[1] == []
    world.log("b", "m", step=1)
    every, changed = world.runs.news()
    assert ({info.run_id for info in every}, [info.latest_step for info in changed]) == ({"a", "b"}, [1])
    world.runs.edit("a", {"notes": "for a moment"})
    assert {info.notes for info in world.runs.told()} == {"for a moment", None}
    world.runs.edit("a", {"notes": ""})
    assert [info.run_id for info in world.runs.news()[1]] == ["a"], "who heard of the notes hears that they are gone"


def test_the_record_of_a_run_is_the_same_one_until_something_of_it_changes() -> None:
    book = RunBook(ManualClock())

    def told(name: str, config: str, tags: list[str], notes: str) -> RunInfo | None:
        book.describe("r", {"name": name}, config, tags, started_ms=7)
        book.state("r", "finished", "", 1)
        book.edit("r", {"notes": notes})
        return book.info("r")

    first = told("n", '{"lr": 1}', ["a"], "x")
    assert first is told("n", '{"lr": 1}', ["a"], "x"), "the store tells it again every 30 s"
    assert [book.info("r") is first, first is told("m", "", [], "x")] == [True, False]
    for words in (("m", '{"lr": 2}', ["a"], "x"), ("m", "", ["b"], "x"), ("m", "", ["b"], "y")):
        before = book.info("r")
        assert told(*words) != before
    after = book.info("r")
    assert after is not None
    assert (after.name, after.config, after.tags, after.notes) == ("m", {"lr": 2}, ["b"], "y")
