"""JSON answers from bytes: what was encoded once is sent as it is, never through FastAPI's own encoder."""

from typing import Any, Generic, TypeVar, get_args

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema
from starlette.responses import Response

from strata.observatory.records.encoding import encode

__all__ = ["Answer", "answer"]

T = TypeVar("T")


class Answer(Response, Generic[T]):
    """A response whose bytes are the JSON of a T. FastAPI describes T and looks at nothing: a route that returns
    `Answer[Worker]` is checked by mypy, and costs no validation. Live data: no cache may keep it."""

    media_type = "application/json"

    def __init__(self, body: bytes) -> None:
        super().__init__(body, headers={"cache-control": "no-store"})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(get_args(source)[0])


def answer(record: T) -> Answer[T]:
    """Encodes a record, or a list of them."""
    return Answer(encode(record))
