"""POST /api/sql: a question in SQL over metric_points, runs and logs."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from strata.observatory.answers.questions import SqlAnswer
from strata.observatory.http.body import Body
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer

__all__ = ["sql_router"]


class SqlQuestion(Body):
    """One SELECT in ClickHouse's SQL."""

    query: Annotated[str, Field(min_length=1, max_length=100_000)]


def sql_router(parts: Parts) -> APIRouter:
    """Whoever may look may ask: nothing else can be reached by it."""
    router = APIRouter(tags=["sql"])

    @router.post("/api/sql")
    async def sql(body: SqlQuestion) -> Answer[SqlAnswer]:
        """Read only; at most 10,000 rows, 10 s and 1 GiB, which the engine itself enforces. docs/asking.md has more."""
        return answer(await parts.questions.ask(body.query))

    return router
