"""One real cluster, one real training task and one chromium for all browser tests; a console error fails the test."""

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from strata.demo.spirals import write_spirals
from strata.observatory.http.static import WEB_DIR
from tests.browser.site import Site
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

STARTS_WITHIN_S = 90.0
"""Four worker processes import numpy and pyarrow on two cores; about 8 s when nothing else runs."""

STEP_S = 0.08
"""A step of the training: slow enough that the tests have the cores, not the job that they look at."""
expect.set_options(timeout=60_000)  # a busy machine; whoever finds what it looks for does not wait


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Of this package alone: playwright's event loop runs while it lives, and asyncio's tests refuse a second one."""
    found = os.environ.get("STRATA_CHROMIUM") or shutil.which("chromium")
    assert found, "chromium was not found: `make browser` installs it, STRATA_CHROMIUM names another one"
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=found) as launched:
        yield launched


@pytest.fixture(scope="package")
def one_context(browser: Browser) -> Iterator[BrowserContext]:
    """One profile for all tests: the bundle is loaded and compiled once, not forty times."""
    with browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light") as context:
        context.set_default_timeout(60_000)
        yield context


@pytest.fixture
def page(one_context: BrowserContext) -> Iterator[Page]:
    page = one_context.new_page()
    yield page
    page.close()


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), "--slots", "6") as running:
        yield running


@pytest.fixture(scope="package")
def task(cluster: Cluster) -> str:
    """The id of a real training task of four workers that outlasts the tests."""
    path = write_spirals(cluster.folder / "demo")
    cluster.post("/api/datasets", {"id": "spirals", "path": path, "format": "parquet", "shard_size": 500, "seed": 42})
    config = {"epochs": 10_000, "batch_size": 32, "checkpoint_every": 40, "pause_s": STEP_S, "grace_s": 10}
    task = {"name": "spirals-mlp", "dataset_id": "spirals", "worker_count": 4, "max_restarts": 10_000, "config": config}
    task_id = str(cluster.post("/api/tasks", task)["task_id"])
    site = Site(cluster, task_id)
    eventually("four workers at work", lambda: len(site.active()) == 4, within_s=STARTS_WITHIN_S)
    eventually("a checkpoint", site.newest_checkpoint, within_s=STARTS_WITHIN_S)
    eventually("a barrier", lambda: cluster.get("/api/barriers"), within_s=STARTS_WITHIN_S)
    return task_id


@pytest.fixture
def site(cluster: Cluster, task: str) -> Site:
    return Site(cluster, task)


@pytest.fixture(autouse=True)
def console_errors(page: Page) -> Iterator[list[str]]:
    """A test that takes the server away clears the list; every other one leaves it empty."""
    errors: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(f"{message.text} ({message.location.get('url')})")

    page.on("console", listen)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield errors
    assert errors == []


@pytest.fixture(scope="package")
def static_site() -> Iterator[str]:
    """The built bundle behind a plain file server: no API at all."""
    handler = functools.partial(_Quiet, directory=str(WEB_DIR))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
        """Nothing: the test's output is not its access log."""
