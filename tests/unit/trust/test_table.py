"""The table is whole: every method of our servers and every route has its row, and no row is about nothing."""

from collections.abc import Iterator
from typing import Any, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2_grpc

from scripts.rights import PAGE, render, written
from strata.errors import PermissionDenied, Unauthenticated
from strata.grpcserver.server import Server
from strata.observatory.http.app import create_app
from strata.protocol.generated import (
    agents_pb2_grpc,
    control_pb2_grpc,
    coordinator_pb2_grpc,
    ranks_pb2_grpc,
    telemetry_pb2,
    telemetry_pb2_grpc,
    trust_pb2_grpc,
)
from strata.protocol.generated import coordinator_pb2 as pb
from strata.trust.proofs import Proofs
from strata.trust.table import TABLE, Admission, acts_of, admit
from strata.trust.who import OWNER, STRANGER, Visitor, Who

_RANK = Visitor(Who.RANK, "t", 1)


class _Anything:
    """Stands for parts that routes only keep."""

    def __getattr__(self, name: str) -> Any:
        return _Anything()

    def __call__(self, *_: Any, **__: Any) -> Any:
        return _Anything()

    def __iter__(self) -> Iterator[Any]:
        return iter(())


def _methods() -> set[str]:
    """As generated code registers them with our server."""
    server = Server()
    registry = cast("grpc.aio.Server", server)
    servicer = cast("Any", _Anything())
    coordinator_pb2_grpc.add_CoordinatorServicer_to_server(servicer, registry)
    control_pb2_grpc.add_ControlServicer_to_server(servicer, registry)
    agents_pb2_grpc.add_AgentsServicer_to_server(servicer, registry)
    ranks_pb2_grpc.add_RanksServicer_to_server(servicer, registry)
    telemetry_pb2_grpc.add_TelemetryServicer_to_server(servicer, registry)
    trust_pb2_grpc.add_TrustServicer_to_server(servicer, registry)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, registry)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, registry)  # type: ignore[no-untyped-call]  # its stubs have no types
    return set(server._methods)


def _routes() -> set[str]:
    app = create_app(cast("Any", _Anything()))
    routes: Any = next(layer.kwargs["routes"] for layer in app.user_middleware if "routes" in layer.kwargs)
    return {f"{method} {route.path}" for route in routes for method in route.methods - {"HEAD"}}


def test_every_method_and_every_route_has_a_row_and_no_row_is_about_nothing() -> None:
    served = _methods() | _routes()
    assert served - TABLE.keys() == set(), "add a row to strata/trust/table.py, then `make rights`"
    assert TABLE.keys() - served == set()


def test_every_field_that_names_a_worker_or_a_task_must_be_the_rank_s_own() -> None:
    service = pb.DESCRIPTOR.services_by_name["Coordinator"]
    for method in service.methods:
        rule = TABLE[f"/{service.full_name}/{method.name}"]
        named = {"worker_id", "job_id"} & set(method.input_type.fields_by_name)
        assert named <= set(rule.own), method.name
    assert "task_id" in TABLE["/coordinator.Coordinator/RegisterWorker"].own
    assert telemetry_pb2.DESCRIPTOR.services_by_name["Telemetry"].full_name == "strata.telemetry.Telemetry"


def test_the_page_shows_the_table() -> None:
    assert written(PAGE.read_text()) == render(), "run `make rights`"


def test_what_is_not_listed_is_refused_to_everybody() -> None:
    for visitor, error in ((OWNER, PermissionDenied), (_RANK, PermissionDenied), (STRANGER, Unauthenticated)):
        assert isinstance(admit("GET /new", visitor), error)


def test_a_rank_names_only_its_own() -> None:
    admission = admit("/coordinator.Coordinator/RegisterWorker", _RANK)
    assert isinstance(admission, Admission)
    admission.check_own(pb.WorkerInfo(worker_id="t-0", task_id="t"))
    for worker_id, task_id in (("t-0", "u"), ("u-0", "t"), ("t-x", "t"), ("t", "t"), ("t-0-0", "t")):
        with pytest.raises(PermissionDenied):
            admission.check_own(pb.WorkerInfo(worker_id=worker_id, task_id=task_id))


def test_a_secret_is_of_one_attempt_and_of_one_cluster() -> None:
    mine = Proofs("token")
    secret = mine.mint_secret("a.b-1", 3)
    assert mine.recognise(None, secret=secret) == Visitor(Who.RANK, "a.b-1", 3)
    forged = [secret.replace(".3.", ".4."), secret[:-1], f"{secret}0", "", ".", "..", "a.b-1.3.", "x.²." + secret[-64:]]
    for wrong in forged:
        assert mine.recognise(None, secret=wrong) is STRANGER, wrong
    assert Proofs("other").recognise(None, secret=secret) is STRANGER
    assert Proofs(None).recognise(None, token="", secret=Proofs("").mint_secret("t", 1)) is STRANGER
    assert mine.recognise(None, token="token") is OWNER


def test_a_page_is_told_what_its_caller_may_and_a_viewer_may_not() -> None:
    for who in (Who.VIEWER, Who.STRANGER):
        assert acts_of(who) == []
    for who in (Who.OWNER, Who.OPERATOR):
        acts = acts_of(who)
        assert {"POST /api/tasks", "DELETE /api/runs/{run_id}", "GET /api/datasets/{dataset_id}/preview"} < set(acts)
        assert "GET /api/runs" not in acts
        for row in acts:
            assert isinstance(admit(row, Visitor(who)), Admission)
            assert isinstance(admit(row, Visitor(Who.VIEWER)), PermissionDenied)
