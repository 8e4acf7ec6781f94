"""Signing in: a browser gives the token once, in a body, and keeps a cookie that stands for it. The token itself is
never in an address, where histories, logs and referrers would keep it."""

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request

from strata.observatory.answers.session import Caller
from strata.observatory.answers.status import Success
from strata.observatory.http.asker import visitor
from strata.observatory.http.auth import COOKIE, SESSION_S
from strata.observatory.http.body import Body
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer
from strata.trust.table import acts_of

__all__ = ["session_router"]


class SignIn(Body):
    """What the sign-in form sends."""

    token: str = Field(max_length=1_000)


def session_router(parts: Parts) -> APIRouter:
    """A session is a signed date: nothing is stored here, and it outlives a restart."""
    router = APIRouter(tags=["session"])

    @router.get("/api/session")
    async def caller(request: Request) -> Answer[Caller]:
        who = visitor(request).who
        return answer(Caller(who=who, may=acts_of(who)))

    @router.post("/api/session")
    async def sign_in(body: SignIn, request: Request) -> Answer[Success]:
        value = parts.guard.open_session(body.token.strip())
        response = answer(Success(success=True))
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, value, httponly=True, samesite="strict", secure=secure, max_age=SESSION_S)
        return response

    @router.delete("/api/session")
    async def sign_out() -> Answer[Success]:
        response = answer(Success(success=True))
        response.delete_cookie(COOKIE)
        return response

    return router
