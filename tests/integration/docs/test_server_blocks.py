"""Blocks of the documentation that talk to a running Strata (```bash server, ```python server): run in their order
against a real one, and what they claim is looked up.
"""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster
from tests.support.pages import ROOT, blocks, here, run
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("docs") / "data", "--slots", "4") as running:
        yield running.wait_for_store()


def run_blocks(page: str, cluster: Cluster, folder: Path) -> list[str]:
    """What each block of the page printed. The page's addresses become those of the cluster."""
    printed = []
    for one in blocks(ROOT / page):
        if one.mark == "server":
            code = here(one.code, cluster)
            script = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}" if one.language == "python" else code
            printed.append(run(script, folder, cluster.folder).strip())
    return printed


def answers_in(printed: str) -> list[Any]:
    """JSON that several curls have printed, one after another without a new line."""
    decoder, answers = json.JSONDecoder(), []
    while printed:
        answer, end = decoder.raw_decode(printed)
        answers.append(answer)
        printed = printed[end:].strip()
    return answers


def test_points_written_as_the_page_says_are_read_back_as_it_says(cluster: Cluster, tmp_path: Path) -> None:
    curl, python, read, superseded = run_blocks("docs/writing-metrics.md", cluster, tmp_path)
    assert json.loads(curl) == {"accepted": 3}
    assert python == "{'accepted': 4}"
    (series,) = json.loads(read)["series"]
    assert (series["steps"], series["values"]) == ([2, 3], [0.52, 0.4])
    answer, end = json.JSONDecoder().raw_decode(superseded)  # the table follows without a new line
    assert [one["steps"] for one in answer["series"]] == [[1, 2, 3]], "no step of it was done again"
    assert superseded[end:].count("\n") == 0, "a head and no rows"
    loss = cluster.get("/metrics/sweep-7?metric=loss")["series"][0]
    assert loss["times"] == [1794816000000, 1794816001000, 1794816002500]
    runs = eventually("the run", lambda: [run for run in cluster.get("/runs") if run["run_id"] == "sweep-7"])
    assert runs[0]["latest_step"] == 3
    run_blocks("docs/writing-metrics.md", cluster, tmp_path)
    accuracy = cluster.get("/metrics/sweep-7?metric=val/accuracy")["series"][0]
    assert accuracy["total_points"] == 4, "the same batch_id is stored once"


def test_a_dashboard_is_kept_over_rest(cluster: Cluster, tmp_path: Path) -> None:
    (printed,) = run_blocks("docs/dashboards.md", cluster, tmp_path)
    first, second, listed = answers_in(printed)
    assert [panel["kind"] for panel in first["layout"]["sections"][0]["panels"]] == ["line", "scatter"]
    assert (first["version"], second["version"]) == (1, 2)
    assert [(one["name"], one["version"]) for one in listed] == [("Losses, again", 2)]


def test_an_elastic_task_is_asked_for_from_python(cluster: Cluster, tmp_path: Path) -> None:
    (task_id,) = run_blocks("docs/elastic.md", cluster, tmp_path)
    known = eventually("the task", lambda: [task for task in cluster.get("/api/tasks") if task["id"] == task_id])
    task = known[0]
    assert (task["name"], task["min_workers"], task["worker_count"]) == ("elastic-job", 2, 8)


def test_runs_are_asked_for_from_python_and_in_sql(cluster: Cluster, tmp_path: Path) -> None:
    python, sql = run_blocks("docs/asking.md", cluster, tmp_path)
    assert python.splitlines()[0] == "asked finished 0.001 0.01"
    assert python.splitlines()[1].endswith("attempt> 0.01")
    assert cluster.get("/api/runs?filter=tag:paper")[0]["run_id"] == "asked"
    table, names, *_ = sql.partition("name,lr,median")
    assert "asked" in table
    assert names, "the second answer is CSV"
    answer = json.JSONDecoder().raw_decode(sql[sql.index('{"columns"') :])[0]
    assert answer["columns"][0]["name"] == "lines"


def test_media_are_logged_and_read_back(cluster: Cluster, tmp_path: Path) -> None:
    _, read = run_blocks("docs/media.md", cluster, tmp_path)
    assert read.splitlines()[0].startswith(
        "[('page', 'html', 1), ('predictions', 'table', 1), ('report', 'markdown', 1)"
    )
    assert [line.split()[:3] for line in read.splitlines()[1:]] == [["18", "step", "18"], ["19", "step", "19"]]


def test_a_task_that_breaks_says_why(cluster: Cluster, tmp_path: Path) -> None:
    (printed,) = run_blocks("docs/why.md", cluster, tmp_path)
    assert "Rank 1 exited with code 1: KeyError: 'learning rate' (on " in printed
    assert "It interrupted rank 0. Mend the script, then `strata resume breaks-" in printed
    assert "agent: rank 1 exited with code 1" in printed


def test_a_rule_and_its_target_are_set_as_the_page_says(cluster: Cluster, tmp_path: Path) -> None:
    (printed,) = run_blocks("docs/alerts.md", cluster, tmp_path)
    told = answers_in(printed)[-1]
    assert (told["rules"][0]["name"], told["rules"][0]["targets"]) == ("loss-is-high", ["chat"])
    assert (told["targets"][0]["place"], "T0" in printed) == ("http://127.0.0.1:9", False)
