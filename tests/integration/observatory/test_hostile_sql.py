"""Ten thousand hostile questions to a real observatory: each is refused or bounded, none reads a file, changes a row or
takes the store away from those who ask well. A slice by default, `--hostile-queries 10000` for all.
"""

from collections import Counter
from pathlib import Path

import httpx
import psutil
import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.integration.observatory.test_http import send
from tests.integration.observatory.test_labels import a_run
from tests.support.hostile_sql import grow

SECRET = "only for the one who runs it"
_BOUND_S = 300.0  # a question may take 10 s, and one call of a function a few more, of a quiet machine
_BOUND_BYTES = 3 << 30  # 1 GiB for the question, and what the store itself needs
_GOOD = "SELECT run_id, count() AS n, sum(value) AS total FROM metric_points WHERE run_id = 'kept' GROUP BY run_id"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_hostile_questions_are_refused_or_bounded(
    observatory: ObservatoryProcess, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count = request.config.getoption("--hostile-queries")
    folder = tmp_path / "guarded"
    folder.mkdir()
    (folder / "secret").write_text(SECRET)
    send(observatory, a_run("kept", [3.0, 2.0], name="kept"))
    wait_until(lambda: observatory.post("/api/sql", {"query": _GOOD}).status_code == 200, "the store")
    store = observatory.store_pid()
    outcomes = Counter[int]()
    with httpx.Client(base_url=observatory.http, timeout=_BOUND_S) as client:
        for number, question in enumerate(grow(33, count, str(folder / "secret"))):
            answer = client.post("/api/sql", json={"query": question})
            assert answer.status_code in (200, 400, 422, 429), (question, answer.text)
            assert SECRET not in answer.text, question
            outcomes[answer.status_code] += 1
            if number % 500 == 0:
                _assert_nothing_changed(observatory, folder)
    _assert_nothing_changed(observatory, folder)
    assert observatory.store_pid() == store, "no question ended the store"
    assert psutil.Process(store).memory_info().rss < _BOUND_BYTES
    assert outcomes[200] < count / 20, outcomes
    assert outcomes[400] > count / 2, outcomes


def _assert_nothing_changed(observatory: ObservatoryProcess, folder: Path) -> None:
    answer = observatory.post("/api/sql", {"query": _GOOD})
    assert answer.status_code == 200, answer.text
    assert answer.json()["rows"] == [["kept", 2, 5.0]]
    assert [path.name for path in folder.iterdir()] == ["secret"]
    assert (folder / "secret").read_text() == SECRET
