"""The FastAPI app: routers around live parts. It starts nothing and stops nothing; the server does."""

from fastapi import FastAPI

from strata import __version__
from strata.observatory.http.alert_rules import alert_rules_router
from strata.observatory.http.apidoc import add_api_page
from strata.observatory.http.body_limit import BodyLimit
from strata.observatory.http.checkpoints import checkpoints_router
from strata.observatory.http.cluster import cluster_router
from strata.observatory.http.dashboards import dashboards_router
from strata.observatory.http.datasets import datasets_router
from strata.observatory.http.errors import ERROR_ANSWERS, install_error_handlers
from strata.observatory.http.export import export_router
from strata.observatory.http.head import HeadAsGet
from strata.observatory.http.heat import heat_router
from strata.observatory.http.hosts import hosts_router
from strata.observatory.http.logs import logs_router
from strata.observatory.http.media import media_router
from strata.observatory.http.middleware import GuardMiddleware
from strata.observatory.http.origins import allow_origins
from strata.observatory.http.parts import Parts
from strata.observatory.http.runs import runs_router
from strata.observatory.http.series import series_router
from strata.observatory.http.session import session_router
from strata.observatory.http.sql import sql_router
from strata.observatory.http.static import static_router
from strata.observatory.http.status import status_router
from strata.observatory.http.stream import stream_router
from strata.observatory.http.tasks import tasks_router

__all__ = ["create_app"]

_ROUTERS = (
    status_router,
    stream_router,
    runs_router,
    media_router,
    heat_router,
    series_router,
    logs_router,
    alert_rules_router,
    cluster_router,
    checkpoints_router,
    tasks_router,
    hosts_router,
    datasets_router,
    export_router,
    sql_router,
    dashboards_router,
    session_router,
)


def create_app(parts: Parts) -> FastAPI:
    """Endpoints first; the dashboard's catch-all last."""
    app = FastAPI(
        title="Strata",
        version=__version__,
        description="Distributed training, live.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        responses=ERROR_ANSWERS,
    )
    install_error_handlers(app)
    add_api_page(app)
    routes = list(app.routes)
    for router in (*(make(parts) for make in _ROUTERS), static_router()):
        app.include_router(router)
        routes += router.routes
    app.add_middleware(BodyLimit)
    app.add_middleware(GuardMiddleware, guard=parts.guard, routes=routes)
    allow_origins(app, parts.guard.origins)
    app.add_middleware(HeadAsGet)
    return app
