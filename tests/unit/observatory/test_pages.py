"""An address that is both an endpoint and a page: browsers get the page, programs the data."""

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from strata.observatory.http.pages import PageMiddleware

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"
PROMETHEUS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


async def _show_path(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # an ASGI app in one line
    await PlainTextResponse(Request(scope).url.path)(scope, receive, send)


@pytest.fixture
def client() -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(PageMiddleware(_show_path)), base_url="http://strata")


@pytest.mark.parametrize("path", ["/runs", "/metrics", "/metrics/run-1", "/checkpoints", "/checkpoints/run-1"])
async def test_a_browser_that_navigates_gets_the_page(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers={"accept": BROWSER})
    assert answer.text == "/index.html"
    assert answer.headers["vary"] == "Accept"


@pytest.mark.parametrize("accept", ["*/*", "application/json", PROMETHEUS])
async def test_a_program_gets_the_data(client: httpx.AsyncClient, accept: str) -> None:
    answer = await client.get("/metrics", headers={"accept": accept})
    assert answer.text == "/metrics"
    assert answer.headers["vary"] == "Accept"


async def test_other_addresses_are_not_touched(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/runs", headers={"accept": BROWSER})
    assert answer.text == "/api/runs"
    assert "vary" not in answer.headers
