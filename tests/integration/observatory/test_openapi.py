"""Hostile requests made from the API's own description: each answer is as described, none is a 500, nothing grows.

`--api-cases` says how many requests. They are spread over all operations, half of them valid, half of them not; the two
that start a process of their own get fewer.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
import requests
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.integration.observatory.test_feed import CoordinatorProcess, coordinator

pytestmark = pytest.mark.slow

__all__ = ["coordinator"]  # a fixture that is used by name

_STARTS_A_PROCESS = {("post", "/api/datasets"), ("get", "/api/datasets/{dataset_id}/preview")}
_MAX_PROCESSES = 40
_MAX_GROWTH = 200 << 20


@pytest.fixture
def observatory(tmp_path: Path, coordinator: CoordinatorProcess) -> Iterator[ObservatoryProcess]:
    process = ObservatoryProcess(tmp_path / "data", coordinator=f"127.0.0.1:{coordinator.port}").start()
    wait_until(process.store_ready, "the store's start")
    yield process
    process.dispose()


@pytest.mark.timeout(0)
def test_every_answer_is_as_described(observatory: ObservatoryProcess, request: pytest.FixtureRequest) -> None:
    import schemathesis  # here: it takes seconds, and every worker of pytest collects this file
    from schemathesis.generation import GenerationMode

    description = requests.get(f"{observatory.http}/openapi.json", timeout=60).json()
    schema = schemathesis.openapi.from_dict(description)
    operations: list[Any] = [cast("Any", found).ok() for found in schema.get_all_operations()]
    share = max(1, request.config.getoption("--api-cases") // (2 * len(operations)))
    before = psutil.Process(observatory.pid).memory_info().rss
    failures: list[str] = []
    with requests.Session() as session:
        for operation in operations:
            slow = (operation.method, operation.path) in _STARTS_A_PROCESS
            for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:
                cases = operation.as_strategy(generation_mode=mode)
                number = min(share, _MAX_PROCESSES) if slow else share
                failures += _try(session, observatory.http, cases, number)
    assert failures == []
    assert psutil.Process(observatory.pid).memory_info().rss - before < _MAX_GROWTH
    assert observatory.get("/api/health") == {"status": "ok"}


def _try(session: requests.Session, http: str, cases: Any, number: int) -> list[str]:
    """The first request that was answered with 500, or otherwise than described, as a line of curl."""
    failures: list[str] = []

    @settings(
        max_examples=number, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(cases)
    def run(case: Any) -> None:
        if failures:
            return
        with contextlib.suppress(requests.RequestException, UnicodeError):  # what no client can even send
            kwargs = case.as_transport_kwargs(base_url=http)
            with session.request(**kwargs, timeout=60, stream=True) as answer:
                if answer.status_code == 500:
                    failures.append(f"{case.as_curl_command()}: {answer.text[:300]}")
                elif "event-stream" not in answer.headers["content-type"]:  # that one has no end
                    failures.extend(_misfit(case, answer))

    with contextlib.suppress(Unsatisfiable):  # an operation without anything that could be wrong
        run()
    return failures


def _misfit(case: Any, answer: requests.Response) -> list[str]:
    from schemathesis.core.failures import FailureGroup
    from schemathesis.specs.openapi import checks

    described = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]
    try:
        case.validate_response(answer, checks=described)
    except FailureGroup as error:
        return [str(error)]
    return []
