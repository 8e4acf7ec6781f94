"""A dashboard that is served from elsewhere (VITE_API_URL), and the dev server of `npm run dev`: both connect and both
can change something, once the page's origin is allowed. Real bundles, real Chromium, ports of their own.
"""

import functools
import http.server
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.support.cluster import Cluster
from tests.support.local_http import LOCAL
from tests.support.ports import free_ports
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DASHBOARD = Path(__file__).resolve().parents[2] / "dashboard"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
        """Nothing: the test's output is not its access log."""


@contextmanager
def file_server(folder: Path, port: int) -> Iterator[None]:
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def origin() -> str:
    return f"http://127.0.0.1:{free_ports(1)[0]}"


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory, origin: str) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("far") / "data"
    with Cluster(folder, "--no-agent", "--allow-origin", origin) as running:
        yield running


def _register(page: Page, name: str) -> int:
    """A POST from inside the page, as its own buttons make them: the status of the answer, 0 when it was blocked."""
    script = """async ([base, body]) => {
        try {
            const answer = await fetch(base + "/runs/from-a-page/points", {
                method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});
            return answer.status;
        } catch { return 0; }
    }"""
    base = page.evaluate("document.querySelector('script[data-api]').dataset.api")
    return int(page.evaluate(script, [base, {"points": [{"metric": name, "step": 1, "value": 1}]}]))


def test_a_page_of_another_origin_connects_and_writes(
    page: Page, far: Cluster, origin: str, tmp_path: Path, console_errors: list[str]
) -> None:
    """Takes as long as a build of the bundle, about 5 s on a quiet machine."""
    environment = {**os.environ, "VITE_API_URL": f"{far.endpoints['http']}/api"}
    build = ["npm", "run", "-s", "build", "--", "--outDir", str(tmp_path), "--emptyOutDir"]
    subprocess.run(build, cwd=DASHBOARD, env=environment, check=True, capture_output=True, timeout=300)
    port = int(origin.rpartition(":")[2])
    with file_server(tmp_path, port):
        page.goto(f"{origin}/")
        expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")
        streams = page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
        assert not [name for name in streams if name.startswith(f"{origin}/stream")], "its own origin has no stream"
        assert _register(page, "a") == 200
        eventually("the point", lambda: [one for one in far.get("/runs") if one["run_id"] == "from-a-page"])
        page.get_by_role("link", name=re.compile("^Runs")).first.click()
        expect(page.get_by_role("link", name="from-a-page").first).to_be_visible(timeout=60_000)
        console_errors.clear()  # nothing of it matters here: what the page shows and sends does


def test_origins_are_exact_and_off_by_default(far: Cluster, origin: str, cluster: Cluster) -> None:
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    url = f"{far.endpoints['http']}/api/tasks"
    allowed = httpx.options(url, headers=asked)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == origin
    assert allowed.headers["access-control-allow-credentials"] == "true"
    answer = LOCAL.get(url, headers={"Origin": origin, "Sec-Fetch-Site": "cross-site"})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, origin)
    assert "Origin" in answer.headers["vary"]
    for other in (f"{origin}0", origin.replace("http", "https"), "null", "http://evil.example"):
        refused = LOCAL.get(url, headers={"Origin": other, "Sec-Fetch-Site": "cross-site"})
        assert refused.status_code == 403
        assert "access-control-allow-origin" not in refused.headers
        assert httpx.options(url, headers={**asked, "Origin": other}).status_code == 400
    shut = httpx.options(f"{cluster.endpoints['http']}/api/tasks", headers=asked)
    assert shut.status_code in (403, 405)
    assert "access-control-allow-origin" not in shut.headers


def test_the_dev_server_passes_calls_on(page: Page, far: Cluster, console_errors: list[str]) -> None:
    """`npm run dev`: the page of Vite's own server reads and writes through its proxy."""
    port = free_ports(1)[0]
    command = ["npm", "run", "-s", "dev", "--", "--host", "127.0.0.1", "--port", str(port), "--strictPort"]
    environment = {**os.environ, "STRATA_HTTP": far.endpoints["http"]}
    process = subprocess.Popen(command, cwd=DASHBOARD, env=environment, start_new_session=True)
    try:
        eventually("the dev server", lambda: _answers(port), within_s=60)
        page.goto(f"http://127.0.0.1:{port}/", timeout=120_000)
        expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=120_000)
        assert _register(page, "b") == 200
        cross = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
        points = {"points": [{"metric": "c", "step": 1, "value": 1}]}
        refused = LOCAL.post(f"http://127.0.0.1:{port}/api/runs/x/points", json=points, headers=cross)
        assert refused.status_code == 403
        console_errors.clear()
    finally:
        os.killpg(process.pid, 15)
        process.wait(30)


def _answers(port: int) -> bool:
    try:
        return LOCAL.get(f"http://127.0.0.1:{port}/").is_success
    except httpx.TransportError:
        return False
