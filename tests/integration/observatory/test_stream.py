"""The stream of a real server: snapshot plus deltas is the store, whatever happens to the connection."""

import asyncio
import random
from functools import partial

import httpx
import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.integration.observatory.sse import StreamClient


async def post(process: ObservatoryProcess, run_id: str, points: list[dict[str, object]], batch_id: str = "") -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        body = {"points": points, "batch_id": batch_id}
        response = await client.post(f"{process.http}/api/runs/{run_id}/points", json=body)
        assert response.status_code == 200, response.text


def stored(process: ObservatoryProcess, run_id: str, metric: str) -> list[tuple[int, int, float | None]]:
    """Straight from the store: a step range is never answered by the cache."""
    series = process.get(f"/metrics/{run_id}", metric=metric, from_step=0)["series"]
    return list(zip(series[0]["steps"], series[0]["times"], series[0]["values"], strict=True)) if series else []


def backlog(process: ObservatoryProcess) -> int:
    return int(process.get("/api/status")["spool_backlog_bytes"])


def _has(client: StreamClient, run_id: str, metric: str, count: int) -> bool:
    return len(client.of(run_id, metric)) == count


@pytest.mark.parametrize("seed", [1, 2])
async def test_no_point_is_lost_or_doubled_under_any_disconnect(
    shared_observatory: ObservatoryProcess, seed: int
) -> None:
    """Random writes, repeats of batches, drops of the connection with and without its cursor."""
    chance = random.Random(seed)
    run_id, metrics = f"prop-{seed}", ["loss", "lr", "acc"]
    client = StreamClient(shared_observatory.http)
    await client.open()
    steps = dict.fromkeys(metrics, 0)
    for number in range(40):
        match chance.random():
            case x if x < 0.6:
                metric = chance.choice(metrics)
                points: list[dict[str, object]] = []
                for _ in range(chance.randint(1, 12)):
                    steps[metric] += chance.choice([0, 1, 1, 3])
                    value = chance.choice([chance.random(), chance.random(), None])
                    when = 1_794_000_000 + len(points) + number * 100
                    points.append({"metric": metric, "step": steps[metric], "value": value, "event_time": when})
                for _ in range(chance.choice([1, 1, 2])):
                    await post(shared_observatory, run_id, points, f"{run_id}-{number}")
            case x if x < 0.8:
                await client.close()
                await client.open(resume=True)
            case x if x < 0.9:
                await client.close()
                await client.open(resume=False)
            case _:
                await asyncio.sleep(0.1)  # lets ticks fall between the actions; the order of both is what is tested
    await asyncio.to_thread(wait_until, lambda: backlog(shared_observatory) == 0, "an empty spool")
    for metric in metrics:
        expected = await asyncio.to_thread(stored, shared_observatory, run_id, metric)
        await client.wait_for(partial(_has, client, run_id, metric, len(expected)))
        assert sorted(client.of(run_id, metric), key=str) == sorted(expected, key=str)
        fresh = StreamClient(shared_observatory.http)
        await fresh.open()
        await fresh.wait_for(partial(bool, fresh.events))
        assert sorted(fresh.of(run_id, metric), key=str) == sorted(expected, key=str)
        await fresh.close()
    await client.close()


async def test_an_unknown_cursor_gets_resync_and_then_a_snapshot(shared_observatory: ObservatoryProcess) -> None:
    client = StreamClient(shared_observatory.http)
    client.last_id = "another-epoch:17"
    await client.open()
    await client.wait_for(lambda: len(client.events) >= 2)
    assert [name for name, _ in client.events[:2]] == ["resync", "snapshot"]
    assert "reason" in client.events[0][1]
    await client.close()


async def test_runs_and_topics_narrow_the_stream(shared_observatory: ObservatoryProcess) -> None:
    client = StreamClient(shared_observatory.http, params={"runs": "only-a", "topics": "metrics"})
    await client.open()
    await post(shared_observatory, "only-b", [{"metric": "loss", "step": 1, "value": 1.0}])
    await post(shared_observatory, "only-a", [{"metric": "loss", "step": 1, "value": 2.0}])
    await client.wait_for(lambda: client.count("only-a") == 1)
    assert client.count("only-b") == 0
    assert {name for name, _ in client.events} <= {"snapshot", "delta", "runs_meta", "resync"}
    await client.close()


async def test_history_is_complete_after_a_restart(observatory: ObservatoryProcess) -> None:
    """Takes about 6 s: two starts of real processes and 5,000 points."""
    points: list[dict[str, object]] = [
        {"metric": "loss", "step": step, "value": 1.0 / (step + 1), "event_time": 1_794_000_000 + step}
        for step in range(5_000)
    ]
    for start in range(0, 5_000, 1_000):
        await post(observatory, "long", points[start : start + 1_000])
    await post(observatory, "short", points[:300])
    observatory.stop()
    observatory.start()
    await asyncio.to_thread(wait_until, lambda: len(observatory.get("/runs")) == 2, "both runs in the list")

    def total(run_id: str) -> int:
        return sum(series["total_points"] for series in observatory.get(f"/metrics/{run_id}")["series"])

    await asyncio.to_thread(wait_until, lambda: total("long") == 5_000 and total("short") == 300, "the whole history")
    client = StreamClient(observatory.http)
    await client.open()
    await client.wait_for(lambda: client.count("short") == 300)
    long = client.of("long", "loss")
    assert len(long) <= 2_000
    assert max(value for _, _, value in long if value is not None) == 1.0
    assert long[-1][0] == 4_999
    await post(observatory, "short", [{"metric": "loss", "step": 300, "value": 0.5}])
    await client.wait_for(lambda: client.count("short") == 301)
    await client.close()


async def test_a_sparse_stream_and_the_points_asked_for_are_the_whole(observatory: ObservatoryProcess) -> None:
    """18,000 points are named in an outline; an answer's total says where in the stream it was read."""
    names = [f"m/{number}" for number in range(20)]
    points: list[dict[str, object]] = [
        {"metric": name, "step": step, "value": None if step == 7 else step / 3, "event_time": 1_794_000_000 + step}
        for name in names
        for step in range(900)
    ]
    await post(observatory, "wide", points)
    client = StreamClient(observatory.http, params={"sparse": "1"})
    await client.open()
    await client.wait_for(partial(bool, client.events))
    name, snapshot = client.events[0]
    outline = snapshot["outline"]
    assert name == "snapshot"
    assert snapshot["series"] == []
    assert sorted(outline["metrics"]) == sorted(names)
    assert set(outline["total_points"]) == {900}
    ids = dict(zip((outline["metrics"][at] for at in outline["metric"]), outline["id"], strict=True))
    client.points.update(
        {number: [] for number in outline["id"]}
    )  # the model has no outlines: what comes later is kept
    await post(observatory, "wide", [{"metric": "m/3", "step": 900, "value": 5.0, "event_time": 1_794_000_900}])
    asked = f"{ids['m/3']},{ids['m/4']},999999"
    answer = await asyncio.to_thread(observatory.get, "/api/series", ids=asked, points=2000)
    assert answer["epoch"] == snapshot["epoch"]
    three, four = answer["series"]
    assert four["total_points"] == len(four["steps"]) == 900
    assert "min" not in four
    assert four["values"][6:9] == [2.0, None, 8 / 3]
    assert four["nan_count"] == 1
    await client.wait_for(partial(bool, client.points[ids["m/3"]]))
    later = client.points[ids["m/3"]][three["total_points"] - 900 :]
    assert three["steps"] + [step for step, _, _ in later] == list(range(901))
    coarse = (await asyncio.to_thread(observatory.get, "/api/series", ids=str(ids["m/3"]), points=64))["series"][0]
    assert len(coarse["steps"]) <= 64
    assert coarse["min"][0] <= coarse["max"][0]
    assert sum(coarse["bad"]) == 1
    assert coarse["steps"][-1] == 900
    with pytest.raises(httpx.HTTPStatusError):
        await asyncio.to_thread(observatory.get, "/api/series", ids="1,x")
    await client.close()
