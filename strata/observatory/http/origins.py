"""Pages of other origins: who may call this server (STRATA_ALLOWED_ORIGINS), and whom our own page may call."""

import re
from collections.abc import Collection
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

__all__ = ["allow_origins", "api_origin", "content_policy"]

_API = re.compile(r'\bdata-api="(https?://[^"]+)"')


def allow_origins(app: FastAPI, origins: Collection[str]) -> None:
    """Exact origins only, so that cookies may travel. With none, the server answers no preflight at all."""
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(origins),
            allow_credentials=True,
            allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "If-Match", "If-None-Match", "Last-Event-ID"],
        )


def api_origin(index: str) -> str:
    """Where the page's API is when it was built with VITE_API_URL of another origin; else nothing."""
    found = _API.search(index)
    if found is None:
        return ""
    parts = urlsplit(found[1])
    return f"{parts.scheme}://{parts.netloc}"


def content_policy(connect: str = "") -> str:
    """What a page of ours may load; `connect` is one more origin that it may call."""
    to = f"'self' {connect}".strip()
    return (
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; script-src 'self'; "
        f"connect-src {to}; object-src 'none'; base-uri 'self'; frame-ancestors 'none'"
    )
