"""The FastAPI app: routers around live parts. It starts nothing and stops nothing; the server does."""

from fastapi import FastAPI

from strata import __version__
from strata.observatory.http.errors import install_error_handlers
from strata.observatory.http.middleware import GuardMiddleware
from strata.observatory.http.parts import Parts
from strata.observatory.http.static import static_router
from strata.observatory.http.status import status_router

__all__ = ["create_app"]


def create_app(parts: Parts) -> FastAPI:
    """Endpoints first; the dashboard's catch-all last."""
    app = FastAPI(title="Strata", version=__version__, description="Distributed training, live.")
    install_error_handlers(app)
    app.include_router(status_router(parts))
    app.include_router(static_router())
    app.add_middleware(GuardMiddleware, guard=parts.guard)
    return app
