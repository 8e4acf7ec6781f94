"""The dashboard's files as a browser gets them: whole, with their type, and kept only where their name has a hash."""

from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from strata.observatory.http.static import static_router


@pytest.fixture
def web(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Strata</title>", encoding="utf-8")
    (tmp_path / "early.js").write_text("early()", encoding="utf-8")
    (tmp_path / "assets" / "vendor-1a2b.js").write_text("x" * 300_000, encoding="utf-8")
    (tmp_path / "demo.gz").write_bytes(b"\x1f\x8b\x00")
    (tmp_path.parent / "secret.txt").write_text("not ours", encoding="utf-8")
    return tmp_path


@pytest.fixture
def browser(web: Path) -> TestClient:
    app = FastAPI()
    app.include_router(static_router(web))
    return TestClient(app)


@pytest.mark.parametrize(
    ("path", "kind", "size", "kept"),
    [
        ("/assets/vendor-1a2b.js", "text/javascript; charset=utf-8", 300_000, "immutable"),
        ("/early.js", "text/javascript; charset=utf-8", 7, "no-cache"),
        ("/demo.gz", "application/octet-stream", 3, "no-cache"),
        ("/ui/runs/any", "text/html; charset=utf-8", 36, "no-cache"),
        ("/", "text/html; charset=utf-8", 36, "no-cache"),
    ],
)
def test_a_file_comes_whole_with_its_type(browser: TestClient, path: str, kind: str, size: int, kept: str) -> None:
    answer = browser.get(path)
    assert (answer.status_code, answer.headers["content-type"], len(answer.content)) == (200, kind, size)
    assert kept in answer.headers["cache-control"]


def test_what_is_not_there_or_not_ours_is_not_sent(browser: TestClient) -> None:
    assert browser.get("/assets/gone-1a2b.js").status_code == 404
    assert browser.get("/api/nothing").status_code == 404
    assert b"not ours" not in browser.get("/..%2fsecret.txt").content


def test_a_new_bundle_is_served_without_a_restart(browser: TestClient, web: Path) -> None:
    assert browser.get("/early.js").text == "early()"
    (web / "early.js").write_text("later()", encoding="utf-8")
    assert browser.get("/early.js").text == "later()"
