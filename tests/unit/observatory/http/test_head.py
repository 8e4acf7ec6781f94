"""HEAD of any route: the status and the headers of its GET, and nothing after them, also where a GET never ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from fastapi import FastAPI
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.testclient import TestClient

from strata.errors import NotFound
from strata.observatory.http.errors import install_error_handlers
from strata.observatory.http.head import HeadAsGet
from strata.observatory.http.static import static_router


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    app = FastAPI()
    install_error_handlers(app)
    app.add_middleware(HeadAsGet)
    (tmp_path / "index.html").write_text("<!doctype html><title>Strata</title>", encoding="utf-8")
    (tmp_path / "points.csv").write_bytes(b"step\n" * 100_000)

    @app.get("/plain")
    async def plain() -> Response:
        return Response(b"12345", headers={"etag": '"1"'})

    @app.get("/refused")
    async def refused() -> Response:
        raise NotFound("there is no such thing")

    @app.get("/file")
    async def file() -> FileResponse:
        path = tmp_path / "points.csv"
        return FileResponse(path, background=BackgroundTask(path.unlink))

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        return StreamingResponse(_without_end(app), media_type="text/event-stream")

    @app.post("/act")
    async def act() -> Response:
        return Response(b"done")

    app.include_router(static_router(tmp_path))
    return TestClient(app)


async def _without_end(app: FastAPI) -> AsyncIterator[bytes]:
    try:
        while True:
            yield b": ping\n\n"
            await asyncio.Event().wait()
    finally:
        app.state.left = True


@pytest.mark.parametrize("path", ["/plain", "/refused", "/", "/ui/runs", "/assets/none.js", "/api/none"])
def test_a_head_has_the_status_and_headers_of_its_get(client: TestClient, path: str) -> None:
    whole, head = client.get(path), client.head(path)
    assert head.status_code == whole.status_code
    assert head.headers == whole.headers
    assert int(head.headers["content-length"]) == len(whole.content) > 0
    assert head.content == b""


def test_a_file_is_measured_and_then_removed_as_after_its_get(client: TestClient, tmp_path: Path) -> None:
    head = client.head("/file")
    assert (head.headers["content-length"], head.content) == ("500000", b"")
    assert not (tmp_path / "points.csv").exists()


def test_a_stream_ends_with_its_headers_and_is_closed(client: TestClient) -> None:
    head = client.head("/stream")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")
    assert cast(FastAPI, client.app).state.left


def test_what_is_no_get_is_not_asked_by_a_head(client: TestClient) -> None:
    """It is a page of the dashboard, as its GET is."""
    assert client.head("/act").headers["content-type"] == client.get("/act").headers["content-type"]
