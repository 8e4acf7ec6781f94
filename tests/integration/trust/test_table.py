"""Every cell of the table of rights, tried on running servers by the one whom it names: the owner, another user of the
machine, that user with each kind of token, and with the secret of a rank's attempt."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import descriptor_pool, message_factory

from strata.client.channel import Channel
from strata.client.tokens import TokensClient
from strata.protocol.generated import ranks_pb2  # noqa: F401  # for the pool of descriptors
from strata.trust.access import Access
from strata.trust.proofs import Proofs
from strata.trust.table import TABLE, Rule, acts_of
from strata.trust.who import Who
from strata.types.tasks import TaskStatus, worker_id_of
from strata.types.tokens import Role
from tests.support.nodes import Nodes, wait_for
from tests.support.stranger import Stranger, needs_root

pytestmark = needs_root

_METHODS = {command: rule for command, rule in TABLE.items() if command.startswith("/")}
_ROUTES = {command: rule for command, rule in TABLE.items() if not command.startswith("/")}
_REFUSED = {"UNAUTHENTICATED", "PERMISSION_DENIED", "UNIMPLEMENTED"}
_UNWRITTEN = "/grpc.health.v1.Health/List"  # grpc's own health service registers it and implements it not


class World:
    """A cluster with a task that runs, and the people around it."""

    def __init__(self, nodes: Nodes, task_id: str) -> None:
        self.nodes = nodes
        self.task_id = task_id
        token = (nodes.data_dir / "token").read_text().strip()
        self.token = f"Bearer {token}"
        self.secret = Proofs(token).mint_secret(task_id, 1)
        with Channel(nodes.address, access=Access(token=token)) as channel:
            tokens = TokensClient(channel)
            made = {role: tokens.create(role.value, 3600.0).partition("@")[0] for role in Role}
        self.holders = {Who(role.value): f"Bearer {made[role]}" for role in Role}

    def address_of(self, path: str) -> str:
        return self.nodes.telemetry if "telemetry" in path else self.nodes.address


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with Nodes(tmp_path_factory.mktemp("rights")) as nodes:
        nodes.start("coordinator", "observatory", "agent")
        sleep = ("python", "-c", "import time; time.sleep(600)")
        task_id = nodes.submit(name="held", worker_count=1, entrypoint=sleep)
        wait_for(lambda: nodes.task(task_id).status is TaskStatus.RUNNING and nodes.rank_pids(task_id), 60)
        world = World(nodes, task_id)
        with Stranger() as other:  # the observatory hears of tokens from the coordinator
            held = {"Authorization": world.holders[Who.OPERATOR]}
            wait_for(lambda: other.rest(nodes.http, "GET", "/api/status", None, **held) == 200, what="its tokens")
        yield world


@pytest.fixture(scope="module")
def stranger() -> Iterator[Stranger]:
    with Stranger() as other:
        yield other


@pytest.fixture(scope="module")
def owner() -> Iterator[Stranger]:
    """A process of our own user, with no token either."""
    with Stranger(user=0) as same:
        yield same


@pytest.mark.parametrize("path", _METHODS)
def test_a_method(world: World, stranger: Stranger, owner: Stranger, path: str) -> None:
    address, rule = world.address_of(path), _METHODS[path]
    if path == _UNWRITTEN:
        assert {owner.grpc(address, path), stranger.grpc(address, path)} == {"UNIMPLEMENTED"}
        return
    assert owner.grpc(address, path, _harmless(path)) not in _REFUSED
    if Who.STRANGER in rule.may:
        assert stranger.grpc(address, path) not in _REFUSED
        return
    assert stranger.grpc(address, path, _harmless(path)) == "UNAUTHENTICATED"
    assert stranger.grpc(address, path, authorization="Bearer wrong") == "UNAUTHENTICATED"
    assert stranger.grpc(address, path, _harmless(path), authorization=world.token) not in _REFUSED
    for who, bearer in world.holders.items():
        answered = stranger.grpc(address, path, _harmless(path), authorization=bearer)
        assert (answered == "PERMISSION_DENIED") == (who not in rule.may), (who, answered)
    shown = {"strata_rank_secret": world.secret}
    if Who.RANK not in rule.may:
        assert stranger.grpc(address, path, b"", **shown) == "PERMISSION_DENIED"
    elif not path.startswith("/strata.telemetry"):
        assert stranger.grpc(address, path, _about(world, path, rule), **shown) not in _REFUSED
        for field in rule.own:
            foreign = _about(world, path, rule, other=field)
            assert stranger.grpc(address, path, foreign, **shown) == "PERMISSION_DENIED", field


@pytest.mark.parametrize("command", _ROUTES)
def test_a_route(world: World, stranger: Stranger, owner: Stranger, command: str) -> None:
    method, path, body = _request(command)
    refused = (401, 403)
    assert owner.rest(world.nodes.http, method, path, body) not in refused or path == "/api/session"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {world.secret}"}):
        status = stranger.rest(world.nodes.http, method, path, body, **headers)
        assert (status == 401) == (Who.STRANGER not in _ROUTES[command].may), (headers, status)
    assert stranger.rest(world.nodes.http, method, path, body, Authorization=world.token) not in refused
    for who, bearer in world.holders.items():
        answered = stranger.rest(world.nodes.http, method, path, body, Authorization=bearer)
        assert (answered == 403) == (who not in _ROUTES[command].may), (who, answered)


def test_another_user_is_told_that_it_may_nothing_and_learns_nothing(
    world: World, stranger: Stranger, owner: Stranger
) -> None:
    """Neither from the rows that anyone may ask nor from the words of those that refuse; what exists is refused as what
    does not."""
    url = world.nodes.http
    assert _caller(stranger.read(url, "GET", "/api/session")) == {"who": "stranger", "may": []}
    assert _caller(owner.read(url, "GET", "/api/session")) == {"who": "owner", "may": acts_of(Who.OWNER)}
    for who, bearer in world.holders.items():
        said = _caller(stranger.read(url, "GET", "/api/session", None, Authorization=bearer))
        assert said == {"who": who, "may": acts_of(who)}
    known = [world.task_id, str(world.nodes.data_dir), world.token.split()[1], world.secret]
    for command in _ROUTES:
        method, path, body = _request(command)
        answer = stranger.read(url, method, path, body)
        assert not [word for word in known if word in answer], (command, answer[:500])
        assert "set-cookie" not in answer.lower() or command == "DELETE /api/session"
    for path in (f"/api/tasks/{world.task_id}", f"/metrics/{world.task_id}", "/api/tasks/none"):
        assert stranger.rest(url, "GET", path) == 401


def _caller(answer: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.rpartition("\n")[2])
    return found


def _request(command: str) -> tuple[str, str, object]:
    """One that names nothing which exists."""
    method, _, route = command.partition(" ")
    path = route.replace("{path:path}", "index.html").replace("{", "no-").replace("}", "")
    return method, path, {} if method in ("POST", "PATCH") else None


def test_what_no_row_names_is_refused(world: World, stranger: Stranger, owner: Stranger) -> None:
    for address in (world.nodes.address, world.nodes.telemetry):
        assert stranger.grpc(address, "/coordinator.Coordinator/Nothing") == "UNAUTHENTICATED"
        assert owner.grpc(address, "/coordinator.Coordinator/Nothing") == "UNIMPLEMENTED"
    assert stranger.rest(world.nodes.http, "PUT", "/api/tasks", {}) == 401
    assert owner.rest(world.nodes.http, "PUT", "/api/tasks", {}) == 405


def _message(path: str, **values: str) -> bytes:
    service, _, method = path[1:].partition("/")
    found: Any = descriptor_pool.Default().FindServiceByName(service)
    kind = found.methods_by_name[method].input_type
    if "hello" in kind.fields_by_name and values:  # a stream that says who it is in its first message
        hello = message_factory.GetMessageClass(kind.fields_by_name["hello"].message_type)(**values)
        return bytes(message_factory.GetMessageClass(kind)(hello=hello).SerializeToString())
    known = {name: value for name, value in values.items() if name in kind.fields_by_name}
    assert known.keys() == values.keys(), (path, values)
    return bytes(message_factory.GetMessageClass(kind)(**known).SerializeToString())


def _harmless(path: str) -> bytes:
    """What changes nothing whoever sends it: nobody has this name."""
    return _message(path, task_id="none") if path.endswith(("StopTask", "ResumeTask")) else b""


def _about(world: World, path: str, rule: Rule, other: str = "") -> bytes:
    """The rank's own names in the fields of the rule, but another's in `other`."""
    mine = {"worker_id": worker_id_of(world.task_id, 0), "task_id": world.task_id, "job_id": world.task_id}
    theirs = {"worker_id": "theirs-0", "task_id": "theirs", "job_id": "theirs"}
    return _message(path, **{field: (theirs if field == other else mine)[field] for field in rule.own})
