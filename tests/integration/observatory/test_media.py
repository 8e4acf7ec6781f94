"""Pictures, histograms, tables and documents through the real road: a script's log, the observatory's door, the store,
REST and `strata.Api`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from strata.client.api import Api
from strata.client.telemetry import send_batches
from strata.errors import InvalidArgument, NotFound
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.media import MAX_ENTRY_BYTES, file_name
from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.support.local_http import LOCAL

pytestmark = pytest.mark.slow
HTML = "<script>document.title = 'x'</script>"
SCRIPT = f"""
import numpy as np
import strata
run = strata.init(run_id="media")
for step in range(20):
    run.log({{
        "loss": 1.0 / (step + 1),
        "picture": strata.Image(np.full((4, 4), step, np.uint8), caption=f"step {{step}}"),
        "weights": strata.Histogram(np.arange(100) * step),
    }}, step=step)
run.log({{"table": strata.Table(["a", "p"], [[1, strata.Image(np.eye(3))]]), "page": strata.Html({HTML!r})}}, step=20)
run.log({{"words": strata.Text("**bold**"), "picture": 3.0}}, step=21)
run.log({{"picture": strata.Image(np.full((4, 4), 255, np.uint8), caption="again")}}, step=5)
print(run.finish(timeout_s=60), run.dropped)
"""


@pytest.fixture(scope="module")
def logged(shared_observatory: ObservatoryProcess, tmp_path_factory: pytest.TempPathFactory) -> ObservatoryProcess:
    """By a script of another host: it shares no folder with the observatory."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    environment = {**os.environ, "STRATA_DATA_DIR": str(elsewhere), "XDG_RUNTIME_DIR": str(elsewhere)}
    environment["STRATA_TELEMETRY_ADDR"] = shared_observatory.telemetry
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, "True 0"), done.stderr
    return shared_observatory


def entries(process: ObservatoryProcess, metric: str, kind: str, **more: Any) -> Any:
    return process.get("/api/runs/media/media/entries", metric=metric, kind=kind, **more)


def test_names_steps_and_entries(logged: ObservatoryProcess) -> None:
    keys = {(key["metric"], key["kind"]): key for key in logged.get("/api/runs/media/media")["keys"]}
    kinds = [
        ("page", "html"),
        ("picture", "image"),
        ("table", "table"),
        ("weights", "histogram"),
        ("words", "markdown"),
    ]
    assert list(keys) == kinds
    picture = keys["picture", "image"]
    assert (picture["num_steps"], picture["first_step"], picture["last_step"], picture["ranks"]) == (20, 0, 19, [0])
    assert [key["metric"] for key in logged.get("/api/runs/media/media", search="IGHT")["keys"]] == ["weights"]
    few = logged.get("/api/runs/media/media", limit=2)
    assert (len(few["keys"]), few["more"]) == (2, True)
    steps = logged.get("/api/runs/media/media/steps", metric="picture", kind="image")
    assert steps["steps"] == list(range(20))
    some = entries(logged, "weights", "histogram", limit=3)
    assert ([entry["step"] for entry in some["entries"]], some["num_steps"]) == ([0, 9, 19], 20)
    [again] = entries(logged, "picture", "image", from_step=5, to_step=5)["entries"]
    assert json.loads(again["text"])["items"][0]["caption"] == "again"
    assert sum(json.loads(some["entries"][1]["text"])["counts"]) == 100
    assert entries(logged, "words", "markdown")["entries"][0]["text"] == "**bold**"
    nothing = entries(logged, "none", "image")
    assert (nothing["num_steps"], nothing["entries"]) == (0, [])


def test_files_are_served_as_what_they_are_and_run_nowhere(logged: ObservatoryProcess) -> None:
    [page] = json.loads(entries(logged, "page", "html")["entries"][0]["text"])["items"]
    answer = LOCAL.get(f"{logged.http}/api/runs/media/files/{page['file']}")
    assert answer.text == HTML
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert "allow-same-origin" not in policy
    assert "immutable" in answer.headers["cache-control"]
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert LOCAL.get(answer.url, headers=elsewhere).status_code == 403
    for name in ("..%2f..%2ftoken", "0.png", f"{'0' * 64}.png", f"{'0' * 64}.PNG"):
        assert LOCAL.get(f"{logged.http}/api/runs/media/files/{name}").status_code in (400, 404)
    assert LOCAL.get(f"{logged.http}/api/runs/nobody/media").status_code == 404


def test_the_api_gives_the_files(logged: ObservatoryProcess) -> None:
    run = Api(data_dir=logged.data_dir).run("media")
    assert [key["metric"] for key in run.media("tab")] == ["table"]
    [entry] = run.entries("table", "table")
    table = json.loads(run.file(json.loads(entry["text"])["items"][0]["file"]))
    assert run.file(table["data"][0][1]["file"]).startswith(b"\x89PNG")
    assert [one["step"] for one in run.entries("picture", "image", from_step=3, to_step=4)] == [3, 4]
    with pytest.raises(NotFound, match="has no file"):
        run.file(f"{'0' * 64}.png")


def test_a_sender_that_breaks_the_rules_is_refused_alone(logged: ObservatoryProcess) -> None:
    def text(name: str, content: bytes) -> Batch:
        message = Batch(batch_id=f"odd-{len(content)}-{name[:6]}")
        point = message.texts.add(run_id="odd", metric="m", kind="image", text="{}")
        point.files.add(name=name, content=content)
        return message

    big = b"x" * (MAX_ENTRY_BYTES + 1)
    for message in (text("../../x", b""), text(f"{'0' * 64}.png", b"y"), text(file_name(big, "png"), big)):
        with pytest.raises(InvalidArgument):
            send_batches([message], logged.telemetry)
    send_batches([text(file_name(b"y", "png"), b"y")], logged.telemetry)
    assert not (logged.data_dir / "checkpoints" / "x").exists()


def test_a_deleted_run_takes_its_files_along(observatory: ObservatoryProcess) -> None:
    wait_until(observatory.store_ready, "the store's start")
    script = "import numpy, strata\nrun = strata.init(run_id='gone')\n"
    script += "run.log({'p': strata.Image(numpy.eye(4))})\nassert run.finish(timeout_s=60)"
    environment = {**os.environ, "STRATA_DATA_DIR": str(observatory.data_dir)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=300)
    folder: Path = observatory.data_dir / "checkpoints" / ".media" / "gone"
    assert len(list(folder.iterdir())) == 1
    assert len(observatory.get("/api/runs/gone/media")["keys"]) == 1
    assert LOCAL.delete(f"{observatory.http}/api/runs/gone").status_code == 200
    wait_until(lambda: not folder.exists(), "the files' removal")
