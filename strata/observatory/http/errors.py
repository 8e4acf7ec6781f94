"""Every failure as `{"error": {"code", "message", "hint", "field"}}` with a fitting status; never a traceback."""

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from strata.errors import Internal, InvalidArgument, NotFound, StrataError
from strata.observatory.answers.errors import ErrorAnswer, ErrorBody
from strata.observatory.records.encoding import encode

__all__ = ["ERROR_ANSWERS", "error_response", "install_error_handlers"]

_log = logging.getLogger(__name__)
# For the description of the API: every route may answer so.
ERROR_ANSWERS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "The request cannot be done"},
    "5XX": {"model": ErrorAnswer, "description": "The server cannot do it now"},
}


def error_response(
    error: StrataError, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """The one form of an error over HTTP."""
    told = ErrorBody(code=error.code, message=error.message, hint=error.hint, field=error.field or None)
    return Response(
        encode(ErrorAnswer(error=told)),
        status_code=status or int(error.http_status),
        media_type="application/json",
        headers=dict(headers or {}),
    )


def install_error_handlers(app: FastAPI) -> None:
    """StrataErrors, validation errors, unknown paths and bugs all leave through `error_response`."""

    @app.exception_handler(StrataError)
    async def on_strata_error(_: Request, error: StrataError) -> Response:
        return error_response(error)

    @app.exception_handler(RequestValidationError)
    async def on_invalid_request(_: Request, error: RequestValidationError) -> Response:
        return error_response(_explain(error), status=422)

    @app.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404:
            found = NotFound(f"there is nothing at {request.url.path}", hint="The API is described at /docs.")
            return error_response(found)
        return error_response(InvalidArgument(str(error.detail)), status=error.status_code, headers=error.headers)

    @app.exception_handler(Exception)
    async def on_bug(request: Request, error: Exception) -> Response:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return error_response(Internal(f"{type(error).__name__} while answering {request.url.path}"))


def _explain(error: RequestValidationError) -> InvalidArgument:
    first = error.errors()[0]
    places = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    text = f"{'.'.join(places) or 'the request'}: {first['msg']}"
    return InvalidArgument(text, field=places[0] if places else "")
