"""The API page: every endpoint, nothing from elsewhere, nothing executable."""

import httpx
from fastapi import FastAPI

from strata.observatory.http.apidoc import add_api_page


def _app() -> FastAPI:
    app = FastAPI(title="Strata <3", docs_url=None)

    @app.get("/api/logs", tags=["logs"])
    async def logs(limit: int = 100, q: str | None = None) -> list[str]:
        """Newest first; `q` searches."""
        return [str(limit), q or ""]

    @app.post("/api/tasks/{task_id}/stop", tags=["tasks"])
    async def stop(task_id: str) -> str:
        return task_id

    add_api_page(app)
    return app


async def test_every_endpoint_with_its_parameters() -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(_app()), base_url="http://strata") as client:
        page = (await client.get("/docs")).text
    assert "GET</span> /api/logs" in page
    assert "limit = 100" in page
    assert "Newest first; `q` searches." in page
    assert "POST</span> /api/tasks/{task_id}/stop" in page
    assert "required" in page


async def test_nothing_from_elsewhere_and_text_is_escaped() -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(_app()), base_url="http://strata") as client:
        page = (await client.get("/docs")).text
    assert "://" not in page
    assert "<script" not in page
    assert "Strata &lt;3 API" in page
